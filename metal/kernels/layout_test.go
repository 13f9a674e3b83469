package kernels_test

import (
	"reflect"
	"strings"
	"testing"

	"slipway/metal/cpurun"
	"slipway/metal/kernels"
)

var params = map[string]any{
	"EmbedParams": kernels.EmbedParams{}, "RMSNormParams": kernels.RMSNormParams{},
	"LinearParams": kernels.LinearParams{}, "SwiGLUParams": kernels.SwiGLUParams{},
	"GatherParams": kernels.GatherParams{}, "RotationParams": kernels.RotationParams{},
	"LinearGemvParams": kernels.LinearGemvParams{}, "LinearRowsParams": kernels.LinearRowsParams{},
	"TopKParams":       kernels.TopKParams{},
	"DeltaInputParams": kernels.DeltaInputParams{},
	"DeltaStepParams":  kernels.DeltaStepParams{}, "GatedNormParams": kernels.GatedNormParams{},
	"AttentionInputParams": kernels.AttentionInputParams{},
	"AttentionParams":      kernels.AttentionParams{}, "AttentionDecodeParams": kernels.AttentionDecodeParams{},
}

// Each struct of each file against its Go twin: names in order, types, offsets and size as clang lays it out.
func TestParamsHaveTheLayoutOfTheKernels(t *testing.T) {
	cpurun.Need(t)
	seen := map[string]bool{}
	for _, name := range kernels.Names() {
		l, err := cpurun.Compile(name+".metal", kernels.Source(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range l.Source.Structs {
			t.Run(name+"/"+s.Name, func(t *testing.T) {
				value, ok := params[s.Name]
				if !ok {
					t.Fatal("no Go twin")
				}
				seen[s.Name] = true
				layout, err := l.Layout(s)
				if err != nil {
					t.Fatal(err)
				}
				kind := reflect.TypeOf(value)
				fields := flat(kind, 0)
				if uintptr(layout[0]) != kind.Size() || len(fields) != len(s.Fields) {
					t.Fatalf("%d bytes and %d fields, in Go %d and %d", layout[0], len(s.Fields), kind.Size(),
						len(fields))
				}
				for i, f := range s.Fields {
					g := fields[i]
					if !strings.EqualFold(strings.ReplaceAll(f.Name, "_", ""), g.name) ||
						uintptr(layout[i+1]) != g.offset || goType[f.Type] != g.kind {
						t.Errorf("field %d is %s %s at %d, in Go %v %s at %d", i, f.Type, f.Name, layout[i+1], g.kind,
							g.name, g.offset)
					}
				}
			})
		}
	}
	for name := range params {
		if !seen[name] {
			t.Errorf("%s is in no kernel file", name)
		}
	}
}

var goType = map[string]reflect.Kind{"uint": reflect.Uint32, "int": reflect.Int32, "float": reflect.Float32}

type field struct {
	name   string
	offset uintptr
	kind   reflect.Kind
}

// flat lists fields with embedded structs opened.
func flat(t reflect.Type, base uintptr) (out []field) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			out = append(out, flat(f.Type, base+f.Offset)...)
		} else {
			out = append(out, field{f.Name, base + f.Offset, f.Type.Kind()})
		}
	}
	return out
}
