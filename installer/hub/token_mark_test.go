package hub

import (
	"os"
	"path/filepath"
	"testing"
)

// A token file may begin with a byte order mark and end with CR LF: an editor wrote them, not the person.
func TestTokenFileOfAWindowsEditorIsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("\ufeffhf_abc\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := tokenIn(file); got != "hf_abc" {
		t.Errorf("%q", got)
	}
}
