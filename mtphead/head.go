// Package mtphead makes an MTP head file for a model whose pack has dropped its head: it finds the head's tensors in
// the original's shards, and writes them in the form of MLX packs, matrices in 4 bit. It is a leaf that installer and
// engine share; it reads no network and no disk.
package mtphead

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"slipway/profiles"
	"slipway/safetensors"
)

// FileName is the head's file, in a folder of its own. Its tensors are named "mtp." and as in the published shards.
const FileName = "mtp.safetensors"

// IndexName is the file that says which tensor is in which shard.
const IndexName = "model.safetensors.index.json"

// group is how many values of a row share a scale.
const group = 64

// Shapes are the tensors of a head of one layer, without their prefix, for a model of this geometry. Source: the
// published shards of the family (model specification, section 4.1).
func Shapes(g profiles.Geometry) map[string][]int64 {
	hidden, inner, dim := int64(g.HiddenSize), int64(g.IntermediateSize), int64(g.HeadDim)
	queries, keys := int64(g.AttentionHeads)*dim, int64(g.KVHeads)*dim
	layer := map[string][]int64{
		"input_layernorm": {hidden}, "post_attention_layernorm": {hidden},
		"self_attn.q_proj": {2 * queries, hidden}, "self_attn.k_proj": {keys, hidden},
		"self_attn.v_proj": {keys, hidden}, "self_attn.o_proj": {hidden, queries},
		"self_attn.q_norm": {dim}, "self_attn.k_norm": {dim},
		"mlp.gate_proj": {inner, hidden}, "mlp.up_proj": {inner, hidden}, "mlp.down_proj": {hidden, inner},
	}
	all := map[string][]int64{"fc.weight": {hidden, 2 * hidden}, "norm.weight": {hidden},
		"pre_fc_norm_embedding.weight": {hidden}, "pre_fc_norm_hidden.weight": {hidden}}
	for name, shape := range layer {
		all["layers.0."+name+".weight"] = shape
	}
	return all
}

// Bytes are the sizes of a head of these shapes: in BF16, as it is fetched, and of its tensors in 4 bit.
func Bytes(shapes map[string][]int64) (original, quantized int64) {
	for _, shape := range shapes {
		values := shape[0]
		if len(shape) == 2 {
			values *= shape[1]
			quantized += values/2 + values/group*4
		} else {
			quantized += 2 * values
		}
		original += 2 * values
	}
	return original, quantized
}

// Shards are the files of an index that hold tensors of a prefix, sorted. Errors: *safetensors.MisfitError.
func Shards(index []byte, prefix string) ([]string, error) {
	var parsed struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(index, &parsed); err != nil {
		return nil, safetensors.Misfit(IndexName, "weight_map", err.Error(), "an object from tensor name to file name")
	}
	files := map[string]bool{}
	for tensor, file := range parsed.WeightMap {
		if strings.HasPrefix(tensor, prefix) {
			files[file] = true
		}
	}
	if len(files) == 0 {
		return nil, safetensors.Misfit(IndexName, prefix+"*", "no such tensor", "an MTP head")
	}
	return slices.Sorted(maps.Keys(files)), nil
}

// Tensor is one tensor of the original: bytes [From, To) of a shard, in BF16.
type Tensor struct {
	Name     string // without the prefix
	Shape    []int64
	File     string
	From, To int64
}

// List is all that is fetched of the original: its tensors in the order of their names, one after the other.
type List []Tensor

// Collect finds the tensors of a prefix in the shards' headers and refuses a head of other names, shapes or types than
// wanted. Errors: *safetensors.MisfitError.
func Collect(headers map[string][]safetensors.Entry, prefix string, wanted map[string][]int64) (List, error) {
	var list List
	for _, file := range slices.Sorted(maps.Keys(headers)) {
		for _, e := range headers[file] {
			name, ours := strings.CutPrefix(e.Name, prefix)
			if !ours {
				continue
			}
			shape, known := wanted[name]
			switch {
			case !known:
				return nil, safetensors.Misfit(file, e.Name, "a tensor", "none of this name in an MTP head")
			case e.DType != safetensors.BF16:
				return nil, safetensors.Misfit(file, e.Name, "dtype "+string(e.DType), "BF16")
			case !slices.Equal(e.Shape, shape):
				return nil, safetensors.Misfit(file, e.Name, fmt.Sprint(e.Shape), fmt.Sprint(shape))
			}
			list = append(list, Tensor{name, shape, file, e.Begin, e.End})
		}
	}
	slices.SortFunc(list, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	for name := range wanted {
		n := 0
		for _, t := range list {
			if t.Name == name {
				n++
			}
		}
		if n != 1 {
			return nil, safetensors.Misfit(IndexName, prefix+name, fmt.Sprintf("%d tensors", n), "one")
		}
	}
	return list, nil
}

// Bytes is the sum of all tensors.
func (l List) Bytes() (n int64) {
	for _, t := range l {
		n += t.To - t.From
	}
	return n
}

// Run is a range [From, To) of a shard that belongs at At of what is fetched.
type Run struct {
	File         string
	From, To, At int64
}

// Runs are the ranges to fetch, in their order: tensors that follow one another in a shard are one.
func (l List) Runs() []Run {
	var runs []Run
	at := int64(0)
	for _, t := range l {
		if last := len(runs) - 1; last >= 0 && runs[last].File == t.File && runs[last].To == t.From {
			runs[last].To = t.To
		} else {
			runs = append(runs, Run{t.File, t.From, t.To, at})
		}
		at += t.To - t.From
	}
	return runs
}

// Convert makes the head file of what was fetched: matrices in 4 bit, norms with 1 added where the original has them
// zero-centred, as MLX packs have them. The same bytes always give the same file. Errors: *safetensors.MisfitError for
// values that are no finite numbers, or raw's.
func Convert(raw io.ReaderAt, list List) ([]byte, error) {
	values := map[string][]float32{}
	read := func(t Tensor, at int64) ([]byte, error) {
		data := make([]byte, t.To-t.From)
		if _, err := raw.ReadAt(data, at); err != nil && err != io.EOF {
			return nil, err
		}
		for i := 1; i < len(data); i += 2 {
			if data[i]&0x7f == 0x7f && data[i-1]&0x80 != 0 { // all exponent bits are set
				return nil, safetensors.Misfit(t.File, t.Name, "a value that is no finite number", "weights")
			}
		}
		return data, nil
	}
	at := int64(0)
	for _, t := range list { // all norms decide how each is written
		if len(t.Shape) == 1 {
			data, err := read(t, at)
			if err != nil {
				return nil, err
			}
			values[t.Name] = safetensors.Floats(nil, safetensors.BF16, data)
		}
		at += t.To - t.From
	}
	shift := float32(0)
	if ZeroCentred(values) {
		shift = 1
	}
	var out []safetensors.Tensor
	at = 0
	for _, t := range list {
		name := "mtp." + t.Name
		if norm, ok := values[t.Name]; ok {
			out = append(out, safetensors.Tensor{Name: name, DType: safetensors.BF16, Shape: t.Shape,
				Data: bf16(norm, shift)})
		} else {
			data, err := read(t, at)
			if err != nil {
				return nil, err
			}
			out = append(out, quantized(strings.TrimSuffix(name, ".weight"), t.Shape, data)...)
		}
		at += t.To - t.From
	}
	return safetensors.Marshal(out), nil
}

func bf16(values []float32, shift float32) []byte {
	data := make([]byte, 0, 2*len(values))
	for _, v := range values {
		b := safetensors.BF16Of(v + shift)
		data = append(data, byte(b), byte(b>>8))
	}
	return data
}

// quantized is a matrix [out, in] of BF16 as the three tensors of its 4-bit form.
func quantized(module string, shape []int64, data []byte) []safetensors.Tensor {
	out, in := int(shape[0]), int(shape[1])
	q := safetensors.QuantizeAffine4(out, in, group, func(dst []float32, r int) {
		safetensors.Floats(dst[:0], safetensors.BF16, data[2*r*in:2*(r+1)*in])
	})
	groups := []int64{shape[0], shape[1] / group}
	return []safetensors.Tensor{
		{Name: module + ".biases", DType: safetensors.BF16, Shape: groups, Data: q.Biases},
		{Name: module + ".scales", DType: safetensors.BF16, Shape: groups, Data: q.Scales},
		{Name: module + ".weight", DType: safetensors.U32, Shape: []int64{shape[0], shape[1] / 8}, Data: q.Codes},
	}
}

// ZeroCentred decides by the mean values of a head's norms whether 1 must be added to them: the mean of a q or k norm
// is under 1.25 and that of another one under 0.5. Measured on published heads by MTPLX, where those with 1 added have
// at least 1.74 and 0.87.
func ZeroCentred(norms map[string][]float32) bool {
	heads, others := false, false
	for name, values := range norms {
		if len(values) == 0 {
			continue
		}
		var sum float64
		for _, v := range values {
			sum += float64(v)
		}
		mean := sum / float64(len(values))
		if strings.HasSuffix(name, "q_norm.weight") || strings.HasSuffix(name, "k_norm.weight") {
			heads = heads || mean < 1.25
		} else {
			others = others || mean < 0.5
		}
	}
	return heads && others
}
