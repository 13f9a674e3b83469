//go:build unix

package metal_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"slipway/engine/device"
	"slipway/metal"
	"slipway/metal/fake"
)

// misaligned is a matrix of f16 [out, 1024] in a mapped file, 2 bytes after a third of a page. All other bytes of the
// file are zero.
func misaligned(t testing.TB, out int) (region []byte, m device.MatrixData, file string) {
	t.Helper()
	n, from := out*2048, 10
	file = filepath.Join(t.TempDir(), "weights")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, int64(from+n+100)); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, at := range []int{from, from + n/2, from + n - 4} {
		if _, err := f.WriteAt([]byte{1, 2, 3, 4}, int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	region, err = syscall.Mmap(int(f.Fd()), 0, from+n+100, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(region) })
	return region, device.MatrixData{Name: "w", Out: out, In: 1024, Format: device.FormatF16,
		Data: region[from : from+n : from+n]}, file
}

// fileResident is the memory of this process that belongs to files; false where the system does not tell.
func fileResident(t *testing.T) (n int64, ok bool) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	_, rest, _ := bytes.Cut(text, []byte("RssFile:"))
	if _, err := fmt.Sscan(string(rest), &n); err != nil {
		t.Fatal(err)
	}
	return n << 10, true
}

// Weights as MLX writes them: the header is not padded, and no tensor of the file is aligned to 16 bytes.
func TestCopiedWeightsAreHeldOnce(t *testing.T) {
	region, m, _ := misaligned(t, 32<<10) // 64 MiB
	reported, size := int64(0), int64(len(m.Data))
	d := open(t, fake.Configuration{}, metal.Options{Mapped: [][]byte{region}, Copied: func(n int64) { reported += n }})
	before, can := fileResident(t)
	held := d.HeldBytes()
	fake.Configure(fake.Configuration{})
	if _, err := d.Matrix(m); err != nil {
		t.Fatal(err)
	}
	if got := d.Weights(); got != (metal.Weights{CopiedBytes: size}) || reported != size || d.HeldBytes()-held != size {
		t.Errorf("counted %+v, reported %d, held %d of %d", got, reported, d.HeldBytes()-held, size)
	}
	if err := d.Prefault(context.Background(), func(done, total int64) {
		t.Errorf("%d of %d bytes are read again", done, total)
	}); err != nil {
		t.Fatal(err)
	}
	after, _ := fileResident(t)
	switch {
	case !can:
		t.Logf("%s does not tell what a process holds of files, so that was not looked at", runtime.GOOS)
	case after-before > size/8:
		t.Errorf("%d bytes of the file are held beside the copy of %d", after-before, size)
	}
	if ok, err := d.MakeResident(); !ok || err != nil || fake.Count().ResidentBytes != uint64(size) {
		t.Errorf("resident: %v, %v, %d bytes of %d", ok, err, fake.Count().ResidentBytes, size)
	}
	d.Close()
	if n := fake.Count().ResidentBytes; n != 0 {
		t.Errorf("%d bytes stay resident after Close", n)
	}
}

func TestCopiedWeightsHaveTheBytesOfTheFile(t *testing.T) {
	region, m, _ := misaligned(t, 5000) // not whole chunks
	d := open(t, fake.Configuration{}, metal.Options{Mapped: [][]byte{region}})
	w, err := d.Matrix(m)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(metal.MatrixBytes(w), m.Data) {
		t.Error("the copy is not the file's bytes")
	}
}

func TestFileTruncatedDuringTheCopyIsAnError(t *testing.T) {
	region, m, file := misaligned(t, 8<<10)
	d := open(t, fake.Configuration{}, metal.Options{Mapped: [][]byte{region}})
	if err := os.Truncate(file, 1<<20); err != nil {
		t.Fatal(err)
	}
	held := d.HeldBytes()
	if _, err := d.Matrix(m); err == nil || !strings.Contains(err.Error(), "from the disk") || d.HeldBytes() != held ||
		d.Weights().CopiedBytes != 0 {
		t.Errorf("%v, wanted an error about the disk; %d bytes held", err, d.HeldBytes()-held)
	}
}

// BenchmarkCopiedWeights: the same bytes read page by page, as Prefault does, copied at once, and copied in chunks, all
// from the system's cache. A copy's time is mostly the new buffer's, which the fake fills.
func BenchmarkCopiedWeights(b *testing.B) {
	region, m, _ := misaligned(b, 128<<10) // 256 MiB
	in := open(b, fake.Configuration{}, metal.Options{Mapped: [][]byte{region}})
	apart := open(b, fake.Configuration{}, metal.Options{})
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"read", func() error { return metal.Touch(region) }},
		{"at once", func() error { return apart.CopyAgain(m.Data) }},
		{"in chunks", func() error { return in.CopyAgain(m.Data) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(m.Data)))
			for range b.N {
				if err := c.do(); err != nil {
					b.Fatal(err)
				}
				unix.Madvise(region, unix.MADV_DONTNEED)
			}
		})
	}
}
