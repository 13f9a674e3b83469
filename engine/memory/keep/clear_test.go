package keep

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
)

// A reload answers that the cache was dropped: then it must be dropped.
func TestClearReturnsOnlyOnceTheFilesAreGone(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	w := newWorld(t, 20, 400, 8<<20)
	kept := func() []string {
		files, err := filepath.Glob(w.dir + "/p*/*")
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	for range 60 {
		prompt, marks := (&chat{}).prompt(text(r, 100))
		w.request(prompt, marks, append(text(r, 8), turnEnds), EndWhole, -1)
	}
	w.store.Flush()
	if n := len(kept()); n < 50 {
		t.Fatalf("%d files to clear", n)
	}
	w.keeper.Clear()
	if n := len(kept()); n > 0 {
		t.Errorf("%d files are left", n)
	}
}
