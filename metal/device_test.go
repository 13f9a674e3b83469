//go:build unix

package metal_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"slipway/engine/device"
	"slipway/metal"
	"slipway/metal/cpurun"
	"slipway/metal/fake"
	"slipway/metal/kernels"
	"slipway/metal/selftest"
)

// with gives a file another text.
func with(file, text string) func(string) string {
	return func(name string) string {
		if name == file {
			return text
		}
		return kernels.Source(name)
	}
}

func TestKernelFileWithAnErrorIsReplaced(t *testing.T) {
	for _, file := range []string{"rms_norm", "linear_gemv", "linear_gemm", "delta_step", "delta_chunk", "gated_norm",
		"attention_input", "attention_flash", "attention_decode", "attention_decode_q8"} {
		t.Run(file, func(t *testing.T) {
			d := open(t, fake.Configuration{Seed: 2}, metal.Options{
				Source: with(file, kernels.Source(file)+"\nthis is no kernel\n")})
			list := d.Degraded()
			if len(list) != 1 || !strings.HasPrefix(list[0], file+" cannot be used here") ||
				!strings.Contains(list[0], "this is no kernel") {
				t.Fatalf("named: %q", list)
			}
			for i, o := range about(file) {
				if what := check(o, d, uint64(i)); what != "" {
					t.Errorf("%s: %s", o.Name, what)
				}
			}
		})
	}
}

func TestKernelWithoutAnotherVariantIsAnError(t *testing.T) {
	cpurun.Need(t)
	libraries, err := fake.Open(fake.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = metal.New(metal.Options{Libraries: libraries, Source: with("swiglu", "this is no kernel")})
	var refused *metal.KernelError
	if !errors.As(err, &refused) || refused.Kernel != "swiglu" {
		t.Fatalf("%v, wanted a KernelError of swiglu", err)
	}
}

func TestGPUOfAnotherMakeIsRefused(t *testing.T) {
	cpurun.Need(t)
	libraries, err := fake.Open(fake.Configuration{Family: 6})
	if err != nil {
		t.Fatal(err)
	}
	var unfit *metal.FamilyError
	if _, err := metal.New(metal.Options{Libraries: libraries}); !errors.As(err, &unfit) ||
		unfit.Facts.AppleFamily != 6 {
		t.Errorf("%v, wanted a FamilyError", err)
	}
	fake.Configure(fake.Configuration{Family: 8, WorkingSetBytes: 5 << 30, NoResidencySets: true})
	f, err := metal.Ask(libraries)
	if err != nil || f.AppleFamily != 8 || !f.Metal3 || f.Metal4 || f.ResidencySets || f.WorkingSetBytes != 5<<30 ||
		f.Name == "" {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestFailedCommandBufferIsAnError(t *testing.T) {
	d := metals(t, fake.Configuration{})["fast"]
	o := selftest.Few()[1]
	fake.Configure(fake.Configuration{FailCommit: 1})
	if _, err := o.Do(newWorld(t, d, 1)); err == nil || !strings.Contains(err.Error(), "told to fail") {
		t.Fatalf("%v, wanted the command buffer's own error", err)
	}
	if what := check(o, d, 1); what != "" {
		t.Errorf("the next pass: %s", what)
	}
}

func TestCancelledPassDoesNotBegin(t *testing.T) {
	d := metals(t, fake.Configuration{})["fast"]
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w := newWorld(t, d, 1)
	x := w.Buffer(1, 8)
	before := fake.Count().Commits
	p := d.NewPass()
	p.Begin(selftest.Stateless(1))
	p.SwiGLU(x, x, x, 1)
	if err := p.Run(ctx); !errors.Is(err, context.Canceled) || fake.Count().Commits != before {
		t.Fatalf("%v after %d commits", err, fake.Count().Commits-before)
	}
}

func TestMemoryBeyondTheWorkingSetIsRefused(t *testing.T) {
	d := open(t, fake.Configuration{WorkingSetBytes: 1 << 20}, metal.Options{})
	b, err := d.Buffer(200, 1024)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Buffer(100, 1024)
	var beyond *device.MemoryError
	if !errors.As(err, &beyond) || beyond.Bytes != 409600 || beyond.Held != 819200 {
		t.Fatalf("%v, wanted a MemoryError with its numbers", err)
	}
	b.Release()
	if b, err = d.Buffer(100, 1024); err != nil {
		t.Fatal(err)
	}
	b.Release()
}

// mapped is a mapping of n bytes, as of a weight file.
func mapped(t *testing.T, n int) []byte {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "weights"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(int64(n)); err != nil {
		t.Fatal(err)
	}
	m, err := syscall.Mmap(int(f.Fd()), 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(m) })
	return m
}

// Matrices of a mapping larger than a buffer may be: overlapping views, no copies but of what is misaligned.
func TestAlignedMappedWeightsAreUsedInPlace(t *testing.T) {
	page := os.Getpagesize()
	region := mapped(t, 21*page)
	d := open(t, fake.Configuration{MaxBufferBytes: int64(7 * page)}, metal.Options{Mapped: [][]byte{region}})
	w, r := newWorld(t, d, 1), newWorld(t, reference(), 1)
	fillFrom := w.FloatBytes(21*page/2, device.FormatF16, 0, 0.1)
	copy(region, fillFrom)
	fake.Configure(fake.Configuration{MaxBufferBytes: int64(7 * page)})
	out := 3 * page / 128 // three pages of rows of 64 device.FormatF16
	x, xr := w.Buffer(2, 64), r.Buffer(2, 64)
	copy(xr.Floats(), x.Floats())
	for i, at := range []int{16, 2*page + 32, 5*page + 48, 9 * page, 16*page + 16, 4 * page, 17*page + 2} {
		before := fake.Count()
		data := device.MatrixData{Name: "w", Out: out, In: 64, Format: device.FormatF16,
			Data: region[at : at+out*128 : at+out*128]}
		m, err := d.Matrix(data)
		if err != nil {
			t.Fatal(err)
		}
		copied := fake.Count().Buffers > before.Buffers
		if misaligned := at%16 != 0; copied != misaligned {
			t.Errorf("matrix %d at %d: copied %v", i, at, copied)
		}
		mr, err := r.Device.Matrix(data)
		if err != nil {
			t.Fatal(err)
		}
		dst, want := w.Output(2, out), r.Output(2, out)
		w.Run(selftest.Stateless(2), func(p device.Pass) { p.Linear(x, []device.Product{{W: m, Dst: dst}}, 2) })
		r.Run(selftest.Stateless(2), func(p device.Pass) { p.Linear(xr, []device.Product{{W: mr, Dst: want}}, 2) })
		if what := differ(selftest.Rows(dst), selftest.Rows(want), 1e-4); what != "" {
			t.Errorf("matrix %d at %d: %s", i, at, what)
		}
	}
	views := fake.Count().MappedBytes
	if views == 0 || views > uint64(4*7*page) {
		t.Errorf("views of %d bytes over %d", views, len(region))
	}
	matrix := int64(out * 128)
	if got := d.Weights(); got != (metal.Weights{InPlaceBytes: 6 * matrix, CopiedBytes: matrix}) {
		t.Errorf("counted: %+v", got)
	}
	last, read := int64(0), int64(18*page+2) // what was copied is not read again
	err := d.Prefault(context.Background(), func(done, total int64) {
		if done <= last || total != read {
			t.Errorf("%d of %d bytes after %d", done, total, last)
		}
		last = done
	})
	if err != nil || last != read {
		t.Errorf("%d bytes were read ahead: %v", last, err)
	}
	for range 2 { // asking again changes nothing
		if ok, err := d.MakeResident(); !ok || err != nil || fake.Count().ResidentBytes != views+uint64(matrix) {
			t.Errorf("resident: %v, %v, %d bytes", ok, err, fake.Count().ResidentBytes)
		}
	}
	d.Close()
	if n := fake.Count().ResidentBytes; n != 0 {
		t.Errorf("%d bytes stay resident after Close", n)
	}
}

func TestMacWithoutResidencySetsWorks(t *testing.T) {
	region := mapped(t, os.Getpagesize())
	d := open(t, fake.Configuration{NoResidencySets: true}, metal.Options{Mapped: [][]byte{region}})
	if _, err := d.Matrix(device.MatrixData{Name: "w", Out: 2, In: 64, Format: device.FormatF16,
		Data: region[:256:256]}); err != nil {
		t.Fatal(err)
	}
	if ok, err := d.MakeResident(); ok || err != nil {
		t.Errorf("resident: %v, %v", ok, err)
	}
}

// A file that is cut while it is mapped faults where its pages were.
func TestTruncatedWeightFileIsAnError(t *testing.T) {
	page := os.Getpagesize()
	file := filepath.Join(t.TempDir(), "weights")
	if err := os.WriteFile(file, make([]byte, 4*page), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	region, err := syscall.Mmap(int(f.Fd()), 0, 4*page, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(region)
	d := open(t, fake.Configuration{}, metal.Options{Mapped: [][]byte{region}})
	defer d.Close() // before the mapping goes
	if _, err := d.Matrix(device.MatrixData{Name: "w", Out: 2, In: 64, Format: device.FormatF16,
		Data: region[:256:256]}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := d.Prefault(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := f.Truncate(int64(page)); err != nil {
		t.Fatal(err)
	}
	if err := d.Prefault(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "from the disk") {
		t.Errorf("%v, wanted an error about the disk", err)
	}
}

func TestStateAndPagesAreCopied(t *testing.T) {
	d := metals(t, fake.Configuration{})["fast"]
	w := newWorld(t, d, 3)
	g := selftest.StateOf(1, 2, 32, 8)
	segments, n := w.SegmentsOf(g, 2, 2)
	x, dst, weight := w.Buffer(n, g.ConvChannels), w.Output(n, g.ConvChannels), w.Vector(4*g.ConvChannels)
	w.Run(segments, func(p device.Pass) { p.Conv(device.Conv{Dst: dst, X: x, Weight: weight, Layer: 1}) })
	segments[1].State.Copy(segments[0].State)
	all := selftest.States(nil, segments, 1)
	if what := differ(all[2:], all[:2], 0); what != "" || selftest.Size(all[1]) == 0 {
		t.Errorf("copied state: %s (size %v)", what, selftest.Size(all[1]))
	}
	segments[0].State.Reset()
	if all := selftest.States(nil, segments[:1], 1); selftest.Size(all[1]) != 0 {
		t.Error("a state that was reset is not zero")
	}
}

func TestClosedDeviceReleasesItsMemory(t *testing.T) {
	cpurun.Need(t)
	libraries, err := fake.Open(fake.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := metal.New(metal.Options{Libraries: libraries, Mapped: [][]byte{mapped(t, 4096)}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Buffer(10, 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.KV(device.KVGeometry{Layers: 1, Heads: 1, HeadDim: 64, Pages: 2}); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, d, 1)
	o := selftest.Few()[2]
	if _, err := o.Do(w); err != nil {
		t.Fatal(err)
	}
	if d.HeldBytes() == 0 {
		t.Fatal("nothing is held")
	}
	d.Close()
	if d.HeldBytes() != 0 {
		t.Errorf("%d bytes are still held after Close", d.HeldBytes())
	}
	b.Release() // late, and harmless
}
