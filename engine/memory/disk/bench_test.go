package disk

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"slipway/engine/memory"
)

// large is a state of the 27B's shapes: 149.6 MiB and pages of 16 MiB.
type large struct{ content }

func (large) ReadState(dst []byte)                   { fill(dst) }
func (large) ReadPage(dst []byte, index, tokens int) { fill(dst) }
func (large) Hidden() []float32                      { return nil }
func (large) Release()                               {}

func fill(b []byte) {
	for i := range b {
		b[i] = byte(i * 7)
	}
}

// A point with a prefix of 13,824 tokens is 1 GiB. Both benchmarks read the same files, one as any program would, the
// other checked and handed out page by page.
func benchStore(b *testing.B) (*Store, []int32) {
	opt := options()
	opt.CapBytes = 4 << 30
	opt.PageTokens = 256
	opt.RowBytes = 0
	opt.StateBytes = 156_893_184 // 149.6 MiB
	opt.Positions = func(n int) int64 { return 65_536 * int64(n) }
	s := open(b, filepath.Join(b.TempDir(), "c"), opt)
	ids := someIDs(1, 54*256)
	result := make(chan error, 1)
	s.Save(key, memory.KindTurn, false, ids, large{}, func(err error) { result <- err })
	if err := <-result; err != nil {
		b.Fatal(err)
	}
	b.SetBytes(s.opt.StateBytes + 54*s.pageFileBytes())
	return s, ids
}

// The files are read from the disk: what the system keeps of them in memory is dropped before every round.
func BenchmarkSequentialReadOfAGiB(b *testing.B) {
	s, _ := benchStore(b)
	buffer := make([]byte, 4<<20)
	for b.Loop() {
		files := cold(b, s)
		for _, path := range files {
			f, err := os.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			for {
				if _, err := f.Read(buffer); err == io.EOF {
					break
				} else if err != nil {
					b.Fatal(err)
				}
			}
			f.Close()
		}
	}
}

func BenchmarkLoadOfAGiB(b *testing.B) {
	s, ids := benchStore(b)
	for b.Loop() {
		cold(b, s)
		saved, err := s.Load(key, ids)
		if err != nil {
			b.Fatal(err)
		}
		for i := range 54 {
			if _, err := saved.Page(i, 256); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// cold lists the store's files and has the system forget them, outside of what is timed.
func cold(b *testing.B, s *Store) []string {
	b.StopTimer()
	defer b.StartTimer()
	files, _ := filepath.Glob(filepath.Join(s.dir, "p*", "*"))
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		if err := forget(f); err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
	return files
}
