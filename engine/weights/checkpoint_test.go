package weights

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"slipway/engine/weights/fixture"
	"slipway/safetensors"
)

// minimal is the least that Open takes: an embedding and one convolution, which tells the form.
func minimal() fixture.File {
	return fixture.File{
		"model.embed_tokens.weight":                     fixture.BF16(make([]float32, 8*64), 8, 64),
		"model.layers.0.linear_attn.conv1d.weight":      fixture.BF16(make([]float32, 16), 4, 4, 1),
		"model.layers.0.mlp.up_proj.weight":             fixture.BF16(make([]float32, 4*64), 4, 64),
		"model.layers.0.linear_attn.in_proj_qkv.weight": fixture.BF16(make([]float32, 4*64), 4, 64),
		"model.layers.0.linear_attn.A_log":              fixture.F32(make([]float32, 2), 2),
	}
}

func write(t *testing.T, config any, files map[string]fixture.File, index bool) string {
	t.Helper()
	dir := t.TempDir()
	if err := fixture.Write(dir, config, files, index); err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t *testing.T, dir string) *Checkpoint {
	t.Helper()
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func single(f fixture.File) map[string]fixture.File {
	return map[string]fixture.File{"model.safetensors": f}
}

func wantMisfit(t *testing.T, err error, file, tensor, found string) {
	t.Helper()
	var m *MisfitError
	if !errors.As(err, &m) {
		t.Fatalf("error %v, wanted a misfit", err)
	}
	if m.File != file || m.Tensor != tensor || !strings.Contains(m.Found, found) || m.Wanted == "" {
		t.Errorf("%q; wanted file %q, tensor %q, found %q", m, file, tensor, found)
	}
}

type object = map[string]any

func TestFoldersThatDoNotFitAreRefusedByName(t *testing.T) {
	noEmbed, oddConv, mixed := minimal(), minimal(), minimal()
	delete(noEmbed, "model.embed_tokens.weight")
	oddConv["model.layers.0.linear_attn.conv1d.weight"] = fixture.BF16(make([]float32, 16), 4, 2, 2)
	mixed["model.layers.1.linear_attn.conv1d.weight"] = fixture.BF16(make([]float32, 16), 4, 1, 4)
	headless := fixture.File{"other": fixture.F32([]float32{1}, 1)}
	for _, row := range []struct {
		name                string
		config              any
		files               map[string]fixture.File
		change              func(dir string) error
		file, tensor, found string
	}{
		{"no config.json", object{}, single(minimal()), func(dir string) error {
			return os.Remove(filepath.Join(dir, "config.json"))
		}, "config.json", "", "no such file"},
		{"config.json that is a list", []int{1}, single(minimal()), nil, "config.json", "", "not a JSON object"},
		{"no weights", object{}, nil, nil, "model.safetensors", "", "no such file"},
		{"truncated weights", object{}, single(minimal()), func(dir string) error {
			return os.Truncate(filepath.Join(dir, "model.safetensors"), 2000)
		}, "model.safetensors", "model.layers.0.linear_attn.in_proj_qkv.weight", "an end at"},
		{"weights cut inside the header", object{}, single(minimal()), func(dir string) error {
			return os.Truncate(filepath.Join(dir, "model.safetensors"), 60)
		}, "model.safetensors", "", "60 bytes"},
		{"empty weights", object{}, single(minimal()), func(dir string) error {
			return os.Truncate(filepath.Join(dir, "model.safetensors"), 0)
		}, "model.safetensors", "", "0 bytes"},
		{"a folder in place of weights", object{}, nil, func(dir string) error {
			return os.Mkdir(filepath.Join(dir, "model.safetensors"), 0o755)
		}, "model.safetensors", "", "a folder"},
		{"a pipe in place of weights", object{}, nil, func(dir string) error {
			return syscall.Mkfifo(filepath.Join(dir, "model.safetensors"), 0o600)
		}, "model.safetensors", "", "a named pipe"},
		{"a device in place of weights", object{}, nil, func(dir string) error {
			return os.Symlink("/dev/zero", filepath.Join(dir, "model.safetensors"))
		}, "model.safetensors", "", "a device"},
		{"a pipe in place of the index", object{}, nil, func(dir string) error {
			return syscall.Mkfifo(filepath.Join(dir, indexName), 0o600)
		}, indexName, "", "a named pipe"},
		{"a pipe in place of generation_config.json", object{}, single(minimal()), func(dir string) error {
			return syscall.Mkfifo(filepath.Join(dir, "generation_config.json"), 0o600)
		}, "generation_config.json", "", "a named pipe"},
		{"a device in place of config.json", object{}, single(minimal()), func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "config.json")),
				os.Symlink("/dev/zero", filepath.Join(dir, "config.json")))
		}, "config.json", "", "a device"},
		{"index that is not JSON", object{}, single(minimal()), func(dir string) error {
			return os.WriteFile(filepath.Join(dir, indexName), []byte("{"), 0o644)
		}, indexName, "weight_map", ""},
		{"index of nothing", object{}, single(minimal()), func(dir string) error {
			return os.WriteFile(filepath.Join(dir, indexName), []byte("{}"), 0o644)
		}, indexName, "weight_map", "nothing"},
		{"missing shard", object{}, single(minimal()), func(dir string) error {
			return os.WriteFile(filepath.Join(dir, indexName),
				[]byte(`{"weight_map":{"model.embed_tokens.weight":"model-00002.safetensors"}}`), 0o644)
		}, "model-00002.safetensors", "", "no such file"},
		{"shard outside the folder", object{}, single(minimal()), func(dir string) error {
			return os.WriteFile(filepath.Join(dir, indexName),
				[]byte(`{"weight_map":{"model.embed_tokens.weight":"../x.safetensors"}}`), 0o644)
		}, "../x.safetensors", "", "leaves the folder"},
		{"tensor that the index promises", object{}, single(minimal()), func(dir string) error {
			return os.WriteFile(filepath.Join(dir, indexName),
				[]byte(`{"weight_map":{"model.embed_tokens.weight":"model.safetensors","model.norm.weight":"model.safetensors"}}`), 0o644)
		}, "model.safetensors", "model.norm.weight", "no such tensor"},
		{"a tensor in two files", object{}, map[string]fixture.File{"model-1.safetensors": minimal(),
			"model-2.safetensors": minimal()}, nil, "model-2.safetensors", "model.embed_tokens.weight",
			"model-1.safetensors has too"},
		{"no embedding under any prefix", object{}, single(noEmbed), nil, "model.safetensors", "embed_tokens.weight",
			"no tensor"},
		{"convolution of neither form", object{}, single(oddConv), nil, "model.safetensors",
			"model.layers.0.linear_attn.conv1d.weight", "[4 2 2]"},
		{"layers of both forms", object{}, single(mixed), nil, "model.safetensors",
			"model.layers.1.linear_attn.conv1d.weight", "[4 1 4]"},
		{"mode mxfp4", object{"quantization": object{"mode": "mxfp4", "bits": 4, "group_size": 32}}, single(minimal()),
			nil, "config.json", "quantization", `"mxfp4"`},
		{"7 bits", object{"quantization": object{"bits": 7, "group_size": 64}}, single(minimal()), nil, "config.json",
			"quantization", "bits 7"},
		{"groups of 16 in an override",
			object{"quantization": object{"model.layers.0.mlp.up_proj": object{"group_size": 16}}}, single(minimal()),
			nil, "config.json", "quantization.model.layers.0.mlp.up_proj", "group_size 16"},
		{"fp8 of another maker", object{"quantization_config": object{"quant_method": "fp8"}}, single(minimal()), nil,
			"config.json", "quantization_config", `"fp8"`},
		{"quantization that is text", object{"quantization": "4bit"}, single(minimal()), nil, "config.json",
			"quantization", "not an object"},
		{"named MTP file that is missing", object{"mlx_lm_extra_tensors": object{"mtp_file": "m.safetensors"}},
			single(minimal()), nil, "m.safetensors", "", "no such file"},
		{"named MTP file outside the folder", object{"mlx_lm_extra_tensors": object{"mtp_file": "/etc/passwd"}},
			single(minimal()), nil, "/etc/passwd", "", "leaves the folder"},
		{"MTP file without a head", object{}, map[string]fixture.File{"model.safetensors": minimal(),
			"mtp.safetensors": headless}, nil, "mtp.safetensors", "fc.weight", "no such tensor"},
		{"MTP head for hidden states before the norm",
			object{"mtplx_mtp_contract": object{"base_hidden_variant": "pre_norm"}}, map[string]fixture.File{
				"model.safetensors": minimal(), "mtp.safetensors": {"fc.weight": fixture.F32(nil, 0)}}, nil,
			"config.json", "mtplx_mtp_contract.base_hidden_variant", "pre_norm"},
		{"MTP norms in an unknown delta form", object{"mtplx_mtp_norm_encoding": "delta_v9"}, map[string]fixture.File{
			"model.safetensors": minimal(), "mtp.safetensors": {"fc.weight": fixture.F32(nil, 0)}}, nil, "config.json",
			"mtplx_mtp_norm_encoding", "delta_v9"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := write(t, row.config, row.files, false)
			if row.change != nil {
				if err := row.change(dir); err != nil {
					t.Fatal(err)
				}
			}
			c, err := Open(dir)
			if err == nil {
				c.Close()
				t.Fatal("it was opened")
			}
			wantMisfit(t, err, row.file, row.tensor, row.found)
		})
	}
}

func TestTensorsThatDoNotFitAreRefusedByName(t *testing.T) {
	const up = "model.layers.0.mlp.up_proj"
	random := make([]float32, 4*64)
	for i := range random {
		random[i] = float32(i%13) - 5
	}
	quantised := func(bits, group int) fixture.File {
		f := minimal()
		f.Quantise(up, random, 4, 64, bits, group)
		return f
	}
	change := func(f fixture.File, name string, edit func(*fixture.Tensor)) fixture.File {
		f = maps.Clone(f)
		v := f[name]
		edit(&v)
		f[name] = v
		return f
	}
	without := func(f fixture.File, name string) fixture.File {
		f = maps.Clone(f)
		delete(f, name)
		return f
	}
	asInts := func(v *fixture.Tensor) { v.DType = "I16" }
	for _, row := range []struct {
		name          string
		config        any
		file          fixture.File
		tensor, found string
	}{
		{"missing", object{}, without(minimal(), up+".weight"), up + ".weight", "no such tensor"},
		{"wrong shape", object{}, change(minimal(), up+".weight", func(v *fixture.Tensor) { v.Shape = []int{64, 4} }),
			up + ".weight", "[64 4]"},
		{"one dimension", object{}, change(minimal(), up+".weight", func(v *fixture.Tensor) { v.Shape = []int{256} }),
			up + ".weight", "[256]"},
		{"integers", object{}, change(minimal(), up+".weight", asInts), up + ".weight", "I16"},
		{"codes without scales", object{}, without(without(quantised(4, 64), up+".scales"), up+".biases"),
			up + ".weight", "without scales"},
		{"scales without biases", object{}, without(quantised(4, 64), up+".biases"), up + ".biases", "no such tensor"},
		{"float weights with scales", object{}, change(quantised(4, 64), up+".weight", func(v *fixture.Tensor) {
			*v = fixture.F32(make([]float32, 4*8), 4, 8)
		}), up + ".weight", "F32"},
		{"codes of a width that no bits give", object{},
			change(quantised(4, 64), up+".weight", func(v *fixture.Tensor) {
				v.Shape, v.Data = []int{4, 7},
					v.Data[:4*7*4]
			}), up + ".weight", "[4 7]"},
		{"scales of a group that does not exist", object{},
			change(quantised(4, 32), up+".scales", func(v *fixture.Tensor) {
				*v = fixture.F32(make([]float32, 4*4), 4, 4)
			}), up + ".scales", "[4 4]"},
		{"biases of another shape than scales", object{},
			change(quantised(4, 32), up+".biases", func(v *fixture.Tensor) {
				*v = fixture.F32(make([]float32, 4), 4, 1)
			}), up + ".biases", "[4 1]"},
		{"biases of another type than scales", object{},
			change(quantised(4, 64), up+".biases", func(v *fixture.Tensor) {
				*v = fixture.BF16(make([]float32, 4), 4, 1)
			}), up + ".biases", "BF16"},
		{"scales of the mx forms", object{}, change(quantised(4, 64), up+".scales", func(v *fixture.Tensor) {
			*v = fixture.Tensor{DType: "U8", Shape: []int{4, 1}, Data: make([]byte, 4)}
		}), up + ".scales", "U8"},
		{"other bits than config.json says", object{"quantization": object{"bits": 8, "group_size": 64}},
			quantised(4, 64), up + ".weight", "4 bits in groups of 64"},
		{"other group than an override says",
			object{"quantization": object{"bits": 4, "group_size": 64, up: object{"bits": 4, "group_size": 128}}},
			quantised(4, 64), up + ".weight", "4 bits in groups of 64"},
		{"quantised although config.json says false",
			object{"quantization": object{"bits": 4, "group_size": 64, up: false}}, quantised(4, 64), up + ".weight",
			"a quantised tensor"},
		{"float although an override quantises it",
			object{"quantization": object{"bits": 4, "group_size": 64, up: object{"bits": 8}}}, minimal(),
			up + ".scales", "no such tensor"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := open(t, write(t, row.config, single(row.file), false))
			_, err := c.Matrix("layers.0.mlp.up_proj", 4, 64)
			wantMisfit(t, err, "model.safetensors", row.tensor, row.found)
		})
	}
	c := open(t, write(t, object{},
		single(change(minimal(), "model.layers.0.linear_attn.A_log", func(v *fixture.Tensor) { v.DType = "I32" })),
		false))
	_, err := c.Floats("layers.0.linear_attn.A_log", 2)
	wantMisfit(t, err, "model.safetensors", "model.layers.0.linear_attn.A_log", "I32")
	_, err = open(t, write(t, object{}, single(minimal()), false)).Floats("layers.0.linear_attn.A_log", 3)
	wantMisfit(t, err, "model.safetensors", "model.layers.0.linear_attn.A_log", "[2]")
	_, err = open(t, write(t, object{}, single(minimal()), false)).Head(false, 64)
	wantMisfit(t, err, "model.safetensors", "lm_head.weight", "no such tensor")
}

// Every width and group, by an override where the config's own numbers differ, reads back within half a step of what
// was quantised.
func TestEveryWidthAndGroupReadsBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const out, in = 5, 256
	values := make([]float32, out*in)
	for i := range values {
		values[i] = float32(r.NormFloat64())
	}
	for _, bits := range []int{2, 3, 4, 5, 6, 8} {
		for _, group := range []int{32, 64, 128} {
			t.Run(fmt.Sprintf("%d bits, groups of %d", bits, group), func(t *testing.T) {
				f := minimal()
				const path = "model.layers.0.mlp.down_proj"
				f.Quantise(path, values, out, in, bits, group)
				config := object{"quantization": object{"bits": 4, "group_size": 64, "mode": "affine", path: object{
					"bits": bits, "group_size": group}}}
				m, err := open(t, write(t, config, single(f), false)).Matrix("layers.0.mlp.down_proj", out, in)
				if err != nil {
					t.Fatal(err)
				}
				if m.Bits != bits || m.Group != group {
					t.Fatalf("read as %d bits, groups of %d", m.Bits, m.Group)
				}
				row := make([]float32, in)
				for o := range out {
					m.Row(row, o)
					for g := 0; g < in; g += group {
						part := values[o*in+g : o*in+g+group]
						low, high := part[0], part[0]
						for _, v := range part {
							low, high = min(low, v), max(high, v)
						}
						step := float64(high-low) / float64(int(1)<<bits-1)
						for i, v := range part {
							// The edge code makes the step a little larger, and the far end may be clipped by as much.
							if d := math.Abs(float64(row[g+i] - v)); d > 1.02*step {
								t.Fatalf("row %d element %d: %f, quantised from %f with steps of %f", o, g+i, row[g+i],
									v, step)
							}
						}
					}
				}
			})
		}
	}
}

// A row is one little-endian bit stream: element j in bits [j·bits, (j+1)·bits). Golden bytes, written by hand.
func TestCodesAreReadLowBitsFirst(t *testing.T) {
	for _, row := range []struct {
		bits  int
		bytes []byte
		want  []uint32
	}{
		{2, []byte{0b11100100, 0b00011011}, []uint32{0, 1, 2, 3, 3, 2, 1, 0}},
		{3, []byte{0b10001000, 0b11000110, 0b11111010}, []uint32{0, 1, 2, 3, 4, 5, 6, 7}},
		{4, []byte{0x21, 0xf3}, []uint32{1, 2, 3, 15}},
		{5, []byte{0b00100000, 0b10001000, 0b01000001, 0b10001010, 0b11111001}, []uint32{0, 1, 2, 3, 4, 5, 6, 31}},
		{6, []byte{0b01000000, 0b00100000, 0b11111100}, []uint32{0, 1, 2, 63}},
		{8, []byte{7, 255}, []uint32{7, 255}},
	} {
		for i, want := range row.want {
			if got := Code(row.bytes, row.bits, i); got != want {
				t.Errorf("%d bits, element %d: %d, wanted %d", row.bits, i, got, want)
			}
		}
	}
}

func TestHalvesWidenExactly(t *testing.T) {
	for _, row := range []struct {
		name string
		half uint16
		want float64
	}{
		{"zero", 0, 0}, {"one", 0x3c00, 1}, {"minus two", 0xc000, -2}, {"largest", 0x7bff, 65504},
		{"least normal", 0x0400, 0x1p-14},
		{"least subnormal", 0x0001, 0x1p-24}, {"largest subnormal", 0x83ff, -1023 * 0x1p-24},
		{"infinity", 0xfc00, math.Inf(-1)},
	} {
		if got := float64(safetensors.HalfToFloat(row.half)); got != row.want {
			t.Errorf("%s: %g, wanted %g", row.name, got, row.want)
		}
	}
	if v := safetensors.HalfToFloat(0x7e00); v == v {
		t.Errorf("NaN became %g", v)
	}
	if v := safetensors.HalfToFloat(0x8000); math.Float32bits(v) != 1<<31 {
		t.Errorf("minus zero became %g", v)
	}
}

func TestNormsAreShiftedInRawFilesOnly(t *testing.T) {
	for _, row := range []struct {
		name  string
		shape []int
		want  float32
	}{{"Hugging Face", []int{4, 1, 4}, 1.25}, {"MLX", []int{4, 4, 1}, 0.25}} {
		f := minimal()
		f["model.layers.0.linear_attn.conv1d.weight"] = fixture.BF16(make([]float32, 16), row.shape...)
		f["model.norm.weight"] = fixture.BF16([]float32{0.25, 0.25}, 2)
		f["model.layers.0.linear_attn.norm.weight"] = fixture.BF16([]float32{0.25, 0.25}, 2)
		c := open(t, write(t, object{}, single(f), false))
		w, err := c.Norm("norm", 2)
		if err != nil || w[0] != row.want {
			t.Errorf("%s: norm %v, %v; wanted %v", row.name, w, err, row.want)
		}
		if w, err = c.Floats("layers.0.linear_attn.norm.weight", 2); err != nil || w[1] != 0.25 {
			t.Errorf("%s: the gated norm became %v, %v", row.name, w, err)
		}
	}
}

// FuzzQuantization: whatever config.json says, no panic, and numbers that are taken are ones that can be read.
func FuzzQuantization(f *testing.F) {
	f.Add([]byte(`{"quantization":{"group_size":64,"bits":4,"mode":"affine","a":{"bits":8},"b":false,"c":null,"d":7}}`))
	f.Add([]byte(`{"quantization":null,"quantization_config":{"quant_method":"mlx"}}`))
	f.Fuzz(func(t *testing.T, config []byte) {
		q, err := parseQuantization(config)
		if err != nil {
			var m *MisfitError
			if !errors.As(err, &m) {
				t.Fatalf("%T, wanted a misfit: %v", err, err)
			}
			return
		}
		if q.stated && !(validBits(q.bits) && validGroup(q.group)) {
			t.Fatalf("taken: %+v", q)
		}
	})
}
