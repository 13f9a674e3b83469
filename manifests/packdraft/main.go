// Command packdraft writes Pocket's DFlash2 draft as it ships: matrices in 4 bit, the rest in BF16. Run it by
// `go generate ./manifests` after the trained weights changed; a test fails until then.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"slipway/engine/weights"
)

// Folders, seen from that of package manifests, where go generate starts it.
const (
	trained = "../engine/draft/dflash/testdata/bf16"
	shipped = "pocket"
)

// group is the group size of the 4-bit form.
const group = 64

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "packdraft:", err)
		os.Exit(1)
	}
}

func run() error {
	config, tensors, err := pack(trained)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(shipped, "dflash2.json"), config, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(shipped, "dflash2.safetensors"), tensors, 0o644)
}

// pack gives configuration and weights of the 4-bit form of the draft in a folder.
func pack(dir string) (config, tensors []byte, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		return nil, nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, nil, err
	}
	fields["quantization"] = map[string]int{"bits": 4, "group_size": group}
	if config, err = json.MarshalIndent(fields, "", "  "); err != nil {
		return nil, nil, err
	}
	from, err := weights.OpenTensors(dir, "model.safetensors")
	if err != nil {
		return nil, nil, err
	}
	defer from.Close()
	var f file
	for _, t := range from.All() {
		if !quantized(t.Name) {
			f.add(t.Name, t.DType, t.Shape, t.Data)
			continue
		}
		m, err := weights.Quantize4(weights.Matrix{Name: t.Name, Out: int(t.Shape[0]), In: int(t.Shape[1]),
			DType: t.DType, Data: t.Data}, group)
		if err != nil {
			return nil, nil, err
		}
		module, groups := strings.TrimSuffix(t.Name, ".weight"), t.Shape[1]/group
		f.add(t.Name, weights.U32, []int64{t.Shape[0], t.Shape[1] / 8}, m.Data)
		f.add(module+".scales", weights.BF16, []int64{t.Shape[0], groups}, m.Scales)
		f.add(module+".biases", weights.BF16, []int64{t.Shape[0], groups}, m.Biases)
	}
	return append(config, '\n'), f.bytes(), nil
}

// quantized names the matrices of the 4-bit form: all but the selector's.
func quantized(name string) bool {
	matrix := strings.HasPrefix(name, "fc.") || strings.HasSuffix(name, "_proj.weight") || strings.HasSuffix(name,
		".kernel_projection.weight")
	return matrix && !strings.HasPrefix(name, "candidate_selector.")
}

// file is a safetensors file in the making.
type file struct {
	header bytes.Buffer
	data   []byte
}

func (f *file) add(name string, dtype weights.DType, shape []int64, data []byte) {
	entry, err := json.Marshal(map[string]any{"dtype": dtype, "shape": shape, "data_offsets": []int{len(f.data),
		len(f.data) + len(data)}})
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(&f.header, ",%q:%s", name, entry)
	f.data = append(f.data, data...)
}

func (f *file) bytes() []byte {
	header := append([]byte(`{"__metadata__":{"format":"mlx"}`), f.header.Bytes()...)
	header = append(header, '}')
	for len(header)%8 != 0 {
		header = append(header, ' ')
	}
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), f.data...)
}
