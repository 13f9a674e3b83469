//go:build linux

// Command accel compiles the Metal kernels to PTX and drives them on an NVIDIA GPU: a proof that they are right when
// thousands of threads really run at once, and that they do not waste the memory's bandwidth. Nothing about Apple
// hardware follows from its numbers (RESULTS.md).
//
//	accel build DIR            compile the kernels, with clang 22
//
//	accel check DIR [ROUNDS]   every kernel against the reference, through the host code of package metal, ROUNDS
//	                           times, the same bits each time
//	accel few DIR              one operation of each kernel, plain variants too: small enough for a tool that watches
//	                           every access
//	accel rates DIR [WORD]     bytes read a second, as shares of what memory gives in the same run
//	accel verify DIR           what a pass that verifies drafts costs beside one of one row, at the 27B's shapes
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/ebitengine/purego"

	"slipway/engine/device/cpu"
	"slipway/metal"
	"slipway/metal/fake"
	"slipway/metal/mtl"
	"slipway/metal/selftest"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: accel build|check|few|rates|verify DIR")
		os.Exit(2)
	}
	dir := os.Args[2]
	var err error
	switch os.Args[1] {
	case "build":
		err = build(dir)
	case "check":
		rounds := 3
		if len(os.Args) > 3 {
			rounds, err = strconv.Atoi(os.Args[3])
		}
		if err == nil {
			err = check(dir, append(append(selftest.TileShapes(), selftest.Largest27B()...), selftest.Whole27B()...),
				rounds)
		}
	case "few":
		err = check(dir, selftest.Few(), 1)
	case "verify":
		err = verify(dir)
	case "rates":
		err = measure(dir, strings.Join(os.Args[3:], " "), func(r rate) {
			fmt.Printf("%-110s %9.1f us %8.1f GB/s %6.1f %%  %3d registers\n", r.Name, r.Seconds*1e6, r.GBs,
				100*r.Share, r.Registers)
		})
	default:
		err = fmt.Errorf("%s is not one of build, check, few, rates, verify", os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// open loads the fake Metal over CUDA.
func open(dir string) (mtl.Libraries, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return mtl.Libraries{}, err
	}
	library, err := purego.Dlopen(filepath.Join(dir, cudaObject), purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return mtl.Libraries{}, err
	}
	var backend func(dir string) uintptr
	purego.RegisterLibFunc(&backend, library, "cuda_backend")
	b := backend(dir)
	if b == 0 {
		return mtl.Libraries{}, fmt.Errorf("this needs an NVIDIA GPU and its driver: there is none here")
	}
	return fake.OpenOver(filepath.Join(dir, fakeObject), b, fake.Configuration{
		WorkingSetBytes: 64 << 30, MaxBufferBytes: 16 << 30})
}

// check runs operations by the fast kernels and by the plain ones against the CPU's reference.
func check(dir string, operations []selftest.Operation, rounds int) error {
	libraries, err := open(dir)
	if err != nil {
		return err
	}
	reference := cpu.New(runtime.NumCPU())
	defer reference.Close()
	wrong := 0
	for _, plain := range []bool{false, true} {
		d, err := metal.New(metal.Options{Libraries: libraries, Plain: plain})
		if err != nil {
			return err
		}
		worst := map[string]float64{}
		for i, o := range operations {
			share, what := selftest.Check(d, reference, o, uint64(i))
			worst[o.Files[0]] = max(worst[o.Files[0]], share)
			if what == "" {
				what = otherBits(d, o, uint64(i), rounds)
			}
			if what != "" {
				wrong++
				fmt.Printf("WRONG  plain %v  %s: %s\n", plain, o.Name, what)
			}
		}
		for _, text := range d.Degraded() {
			wrong++
			fmt.Println("REFUSED  ", text)
		}
		for file, share := range worst {
			fmt.Printf("plain %-5v  %-18s largest difference %.1e of its row's largest value\n", plain, file, share)
		}
		d.Close()
	}
	fmt.Printf("%d operations, fast and plain, %d times each: %d wrong\n", len(operations), rounds, wrong)
	if wrong > 0 {
		return fmt.Errorf("%d operations are wrong", wrong)
	}
	return nil
}

// otherBits runs an operation again and again: a race would show as other bits.
func otherBits(d *metal.Device, o selftest.Operation, seed uint64, rounds int) string {
	var first [][]float32
	for range rounds {
		w := selftest.NewWorld(d, seed)
		got, err := o.Do(w)
		w.Release()
		if err != nil {
			return err.Error()
		}
		if first == nil {
			first = got
		}
		if _, what := selftest.Differ(got, first, 0); what != "" {
			return "other bits in another round: " + what
		}
	}
	return ""
}
