// Command kernelsgen writes the vector forms of package kernels as Go assembly, with their Go declarations.
//
// It is a module of its own, so that the product does not depend on the generator. Run it through go generate in the
// folder above; with -check it writes nothing and fails where a committed file is not what it would write.
//
// Each family of kernels is emitted twice, for AVX2 and for AVX-512, from one description: a place of 16 lanes is one
// 512-bit register or two of 256 bits. All loops keep to VEX and EVEX instructions and end with VZEROUPPER, because a
// legacy SSE instruction with dirty upper halves costs a hundred times its own work.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

func main() {
	dir := flag.String("dir", "..", "folder of the package")
	check := flag.Bool("check", false, "compare with what is there instead of writing")
	flag.Parse()
	families := []struct {
		name string
		emit func(emitter)
	}{
		{"tile", emitTiles},
		{"affine", emitAffine},
		{"dense", emitDense},
		{"read", emitRead},
		{"vector", emitVector},
		{"state", emitState},
	}
	files := neonFiles()
	for _, f := range families {
		c, data := build.NewContext(), map[string]operand.Mem{}
		for _, e := range []emitter{{c, avx2, data}, {c, avx512, data}} {
			f.emit(e)
		}
		file, err := c.Result()
		fail(err)
		fail(pass.Compile.Execute(file))
		cfg := printer.Config{Name: "kernelsgen", Pkg: "kernels"}
		files[f.name+"_amd64.s"], err = printer.NewGoAsm(cfg).Print(file)
		fail(err)
		files[f.name+"_asm_amd64.go"], err = printer.NewStubs(cfg).Print(file)
		fail(err)
	}
	for name, text := range files {
		path := filepath.Join(*dir, name)
		if !*check {
			fail(os.WriteFile(path, text, 0o644))
		} else if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, text) {
			fail(fmt.Errorf("%s is not what the generator writes: run go generate in the folder above", path))
		}
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "kernelsgen: %+v\n", err)
		os.Exit(1)
	}
}
