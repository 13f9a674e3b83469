//go:build linux

package main

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"slipway/metal/cpurun"
	"slipway/metal/fake"
	"slipway/metal/kernels"
)

//go:embed shim/metal_stdlib shim/metal_simdgroup_matrix library/cuda.cpp ceiling.metal
var files embed.FS

// Names of what build leaves and run takes, beside a PTX file for every kernel file and every case of the rates.
const (
	fakeObject = "fake.so"
	cudaObject = "cuda.so"
)

// build compiles everything that run needs into dir, so that the other machine needs no compiler.
func build(dir string) error {
	clang, err := exec.LookPath("clang++-22")
	if err != nil {
		return cpurun.ErrNoCompiler
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "ptx")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	for _, name := range []string{"metal_stdlib", "metal_simdgroup_matrix"} {
		if err := os.WriteFile(filepath.Join(scratch, name), read("shim/"+name), 0o600); err != nil {
			return err
		}
	}
	for _, name := range kernels.Names() {
		if err := ptx(clang, scratch, name, kernels.Source(name), nil,
			filepath.Join(dir, cpurun.Mark(kernels.Source(name))+".ptx")); err != nil {
			return err
		}
	}
	measured := cases()
	for _, rows := range verifiedRows {
		for _, p := range append(products(rows), matrixProducts(rows)...) {
			measured = append(measured, p.testCase)
		}
	}
	done := map[string]bool{}
	for _, c := range measured {
		if done[c.mark()] {
			continue
		}
		done[c.mark()] = true
		if err := ptx(clang, scratch, c.file, c.source(), c.values(), filepath.Join(dir, c.mark()+".ptx")); err != nil {
			return err
		}
	}
	library, err := fake.Build()
	if err != nil {
		return err
	}
	cuda, err := cpurun.Shared("cuda.cpp", string(read("library/cuda.cpp")))
	if err != nil {
		return err
	}
	return errors.Join(copyFile(filepath.Join(dir, fakeObject), library), copyFile(filepath.Join(dir, cudaObject),
		cuda))
}

// ptx compiles a kernel source to PTX for compute capability 9.0.
func ptx(clang, scratch, name, text string, values map[int]uint32, to string) error {
	source, err := cpurun.Parse(text)
	if err != nil {
		return err
	}
	code, err := source.CUDA(name+".metal", values)
	if err != nil {
		return err
	}
	input := filepath.Join(scratch, strings.TrimSuffix(filepath.Base(to), ".ptx")+".cu")
	if err := os.WriteFile(input, []byte(code), 0o600); err != nil {
		return err
	}
	out, err := exec.Command(clang, "-x", "cuda", "--cuda-gpu-arch=sm_90", "--cuda-feature=+ptx80", "-nocudainc",
		"-nocudalib", "--cuda-device-only", "-std=c++17", "-O3",
		// Apple's compiler unrolls short loops over a thread's arrays too: else they lie in memory
		"-mllvm", "-unroll-threshold=20000",
		"-Wall", "-Wno-unknown-attributes", "-Wno-unused", "-Wno-duplicate-decl-specifier", "-Wno-unknown-cuda-version",
		"-Wno-pass-failed", "-I"+scratch, "-S", input, "-o", to).CombinedOutput()
	if err != nil || len(out) > 0 {
		return fmt.Errorf("%s as PTX: %v\n%s", name, err, out)
	}
	return nil
}

func read(name string) []byte {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err) // embedded
	}
	return data
}

func copyFile(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

// marked names a source with the values of its function constants.
func marked(text string, values map[int]uint32) string {
	var b strings.Builder
	b.WriteString(text)
	for _, i := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, "\n%d=%d", i, values[i])
	}
	return cpurun.Mark(b.String())
}
