package cpurun_test

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"slipway/metal/cpurun"
)

const header = "#include <metal_stdlib>\n#include <metal_simdgroup_matrix>\nusing namespace metal;\n"

func compile(t *testing.T, text string) *cpurun.Library {
	t.Helper()
	cpurun.Need(t)
	l, err := cpurun.Compile("test.metal", header+text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func guard(t *testing.T, floats int) ([]float32, *cpurun.Guarded) {
	t.Helper()
	g, err := cpurun.Guard(4 * floats)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Check(); err != nil {
			t.Error(err)
		}
		g.Release()
	})
	return cpurun.Slice[float32](g), g
}

const reverse = `
kernel void reverse(device float *x [[buffer(0)]], uint i [[thread_index_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
  threadgroup float copy[1024];
  copy[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[i] = copy[n - 1 - i];
}`

// runReverse reports whether each seed gave the correct result.
func runReverse(t *testing.T, l *cpurun.Library, threads int) bool {
	t.Helper()
	for seed := range uint64(20) {
		x, g := guard(t, threads)
		for i := range x {
			x[i] = float32(i)
		}
		if err := l.Run(cpurun.Dispatch{Kernel: "reverse", Buffers: map[int]unsafe.Pointer{0: g.Pointer()},
			Grid: [3]uint32{1, 1, 1}, Group: [3]uint32{uint32(threads), 1, 1}, Seed: seed}); err != nil {
			t.Fatal(err)
		}
		for i, v := range x {
			if v != float32(threads-1-i) {
				return false
			}
		}
	}
	return true
}

func TestMissingBarrierGivesAWrongResult(t *testing.T) {
	good := compile(t, reverse)
	bad := compile(t, strings.Replace(reverse, "threadgroup_barrier(mem_flags::mem_threadgroup);", "", 1))
	for _, threads := range []int{2, 31, 32, 33, 255, 1024} {
		if !runReverse(t, good, threads) {
			t.Errorf("%d threads: wrong with its barrier", threads)
		}
		if runReverse(t, bad, threads) {
			t.Errorf("%d threads: right without its barrier", threads)
		}
	}
}

func TestBrokenRuleOfMetalIsAnError(t *testing.T) {
	for _, c := range []struct{ name, kernel, want string }{
		{"barrier that half of the threads reach",
			`kernel void k(device float *x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) { if (i < 16) threadgroup_barrier(mem_flags::mem_none); x[i] = simd_sum(1.0f); }`, "never reach"},
		{"two operations at once",
			`kernel void k(device float *x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) { if (i < 16) x[i] = simd_sum(1.0f); else { float4 v = simd_sum(float4(1.0f)); x[i] = v.x; } }`, "different operations"},
		{"write past a threadgroup array",
			`kernel void k(device float *x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float a[63];
  a[i] = 1.0f;
  x[i] = 0.0f;
}`, "past its end"},
		{"too much threadgroup memory",
			`kernel void k(device float *x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float a[8193];
  a[i] = 1.0f;
  x[i] = a[i];
}`, "32 KiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := compile(t, c.kernel)
			_, g := guard(t, 64)
			err := l.Run(cpurun.Dispatch{Kernel: "k", Buffers: map[int]unsafe.Pointer{0: g.Pointer()}, Grid: [3]uint32{
				1, 1, 1}, Group: [3]uint32{64, 1, 1}})
			var broken *cpurun.RunError
			if !errors.As(err, &broken) || !strings.Contains(broken.What, c.want) {
				t.Fatalf("%v, wanted %q", err, c.want)
			}
		})
	}
}

func TestThreadgroupMemoryBeginsAsNaN(t *testing.T) {
	l := compile(t, `kernel void k(device float *x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float a[32];
  x[i] = a[i];
}`)
	x, g := guard(t, 32)
	clear(x)
	if err := l.Run(cpurun.Dispatch{Kernel: "k", Buffers: map[int]unsafe.Pointer{0: g.Pointer()}, Grid: [3]uint32{
		1, 1, 1}, Group: [3]uint32{32, 1, 1}}); err != nil {
		t.Fatal(err)
	}
	for i, v := range x {
		if !math.IsNaN(float64(v)) {
			t.Fatalf("element %d is %v", i, v)
		}
	}
}

func TestFunctionConstantsAreSetForEachRun(t *testing.T) {
	l := compile(t, "constant uint N [[function_constant(3)]];\nkernel void k(device uint *x [[buffer(0)]], uint i "+
		"[[thread_position_in_grid]]) { x[i] = N; }")
	for _, want := range []uint32{7, 9} {
		_, g := guard(t, 64)
		if err := l.Run(cpurun.Dispatch{Kernel: "k", Constants: map[int]uint32{3: want},
			Buffers: map[int]unsafe.Pointer{0: g.Pointer()}, Grid: [3]uint32{2, 1, 1}, Group: [3]uint32{32, 1, 1},
			Threads: 2}); err != nil {
			t.Fatal(err)
		}
		for i, v := range cpurun.Slice[uint32](g) {
			if v != want {
				t.Fatalf("element %d is %d, wanted %d", i, v, want)
			}
		}
	}
}

func TestCompileErrorNamesFileAndLine(t *testing.T) {
	cpurun.Need(t)
	_, err := cpurun.Compile("broken.metal", "#include <metal_stdlib>\nkernel void k(device float *x [[buffer(0)]]) "+
		"{ x[0] = y; }\n")
	var refused *cpurun.CompileError
	if !errors.As(err, &refused) || !strings.Contains(refused.Text, "broken.metal:2") {
		t.Fatalf("%v, wanted an error at broken.metal:2", err)
	}
}

func TestAbsentCompilerFailsInCI(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, c := range []struct{ ci, want string }{{"true", "failed"}, {"", "skipped"}} {
		t.Setenv("CI", c.ci)
		r := &recorder{}
		cpurun.Need(r)
		if r.did != c.want {
			t.Errorf("CI=%q: %q, wanted %q", c.ci, r.did, c.want)
		}
	}
}

type recorder struct{ did string }

func (r *recorder) Helper()      {}
func (r *recorder) Fatal(...any) { r.did = "failed" }
func (r *recorder) Skip(...any)  { r.did = "skipped" }

// A kernel that reads one element past its buffer must end the process, which only another process can witness.
func TestReadPastABufferEndsTheProcess(t *testing.T) {
	cpurun.Need(t)
	if os.Getenv("READ_PAST_A_BUFFER") != "" {
		l := compile(t, "kernel void k(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = "+
			"x[i + 1]; }")
		_, g := guard(t, 64)
		l.Run(cpurun.Dispatch{Kernel: "k", Buffers: map[int]unsafe.Pointer{0: g.Pointer()}, Grid: [3]uint32{1, 1, 1},
			Group: [3]uint32{64, 1, 1}})
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestReadPastABufferEndsTheProcess$")
	cmd.Env = append(os.Environ(), "READ_PAST_A_BUFFER=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "SIGSEGV") {
		t.Fatalf("the process ended with %v:\n%s", err, out)
	}
}
