package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sort"
	"strings"
)

// Checkpoint is an opened checkpoint folder. It owns the mappings; everything it returned is invalid after Close.
// Reading methods may be called from several goroutines.
type Checkpoint struct {
	Dir        string
	Config     []byte // config.json
	Generation []byte // generation_config.json; nil when there is none

	files   []*file
	tensors map[string]Tensor // by full name, vision left out
	quant   quantization
	prefix  string // in front of "embed_tokens.weight", "layers.N", "norm.weight"
	raw     bool   // Hugging Face form: norms zero-centred, conv1d [C,1,K]
	mtp     *MTP
}

// prefixes in the order in which they are tried; the first that has embed_tokens.weight is the checkpoint's.
var prefixes = []string{"model.", "language_model.model.", "language_model.", "model.language_model.model.",
	"model.language_model."}

const indexName = "model.safetensors.index.json"

// Open maps the checkpoint in dir and finds its conventions. Shapes are checked later, where the model asks for tensors
// and knows what it wants.
func Open(dir string) (c *Checkpoint, err error) {
	c = &Checkpoint{Dir: dir, tensors: map[string]Tensor{}}
	defer func() {
		if err != nil {
			c.Close()
			c = nil
		}
	}()
	if c.Config, err = readFile(dir, "config.json"); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return c, misfit("config.json", "", "no such file in "+dir, "a checkpoint folder")
		}
		return c, err
	}
	if c.Generation, err = readFile(dir, "generation_config.json"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	if c.quant, err = parseQuantization(c.Config); err != nil {
		return c, err
	}
	if err = c.openTrunk(); err != nil {
		return c, err
	}
	if err = c.findPrefix(); err != nil {
		return c, err
	}
	if err = c.findConvention(); err != nil {
		return c, err
	}
	c.mtp, err = c.findMTP()
	return c, err
}

// Close unmaps all files.
func (c *Checkpoint) Close() error {
	var err error
	for _, f := range c.files {
		err = errors.Join(err, f.unmap())
	}
	c.files, c.tensors = nil, nil
	return err
}

// openTrunk opens what the index names, or model.safetensors, or every model*.safetensors.
func (c *Checkpoint) openTrunk() error {
	index, err := readFile(c.Dir, indexName)
	if err == nil {
		return c.openIndexed(index)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	names, err := filepath.Glob(filepath.Join(escapeGlob(c.Dir), "model*.safetensors"))
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return misfit("model.safetensors", "", "no such file in "+c.Dir, "model*.safetensors or "+indexName)
	}
	sort.Strings(names)
	for _, name := range names {
		if base := filepath.Base(name); base != "model-mtp.safetensors" { // a sidecar, found with the MTP head
			if err := c.addFile(base, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

func (c *Checkpoint) openIndexed(text []byte) error {
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return misfit(indexName, "weight_map", err.Error(), "an object from tensor name to file name")
	}
	if len(index.WeightMap) == 0 {
		return misfit(indexName, "weight_map", "nothing", "an object from tensor name to file name")
	}
	shards := map[string]bool{}
	for tensor, shard := range index.WeightMap {
		if !skipped(tensor) { // a shard of vision alone need not be there
			shards[shard] = true
		}
	}
	names := make([]string, 0, len(shards))
	for name := range shards {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if err := c.addFile(name, index.WeightMap); err != nil {
			return err
		}
	}
	listed := make([]string, 0, len(index.WeightMap))
	for tensor := range index.WeightMap {
		listed = append(listed, tensor)
	}
	sort.Strings(listed)
	for _, tensor := range listed {
		if _, ok := c.tensors[tensor]; !ok && !skipped(tensor) {
			return misfit(index.WeightMap[tensor], tensor, "no such tensor", "a tensor that "+indexName+" places there")
		}
	}
	return nil
}

// addFile opens a file and takes its tensors; with an index only those that the index places in it.
func (c *Checkpoint) addFile(name string, index map[string]string) error {
	f, err := openFile(c.Dir, name)
	if err != nil {
		return err
	}
	c.files = append(c.files, f)
	for _, e := range f.entries {
		if skipped(e.Name) || index != nil && index[e.Name] != name {
			continue
		}
		if other, ok := c.tensors[e.Name]; ok {
			return misfit(name, e.Name, "a tensor that "+other.File+" has too", "one tensor of a name")
		}
		c.tensors[e.Name] = Tensor{File: name, Name: e.Name, DType: e.DType, Shape: e.Shape,
			Data: f.data[e.Begin:e.End:e.End]}
	}
	return nil
}

func (c *Checkpoint) findPrefix() error {
	for _, p := range prefixes {
		if _, ok := c.tensors[p+"embed_tokens.weight"]; ok {
			c.prefix = p
			return nil
		}
	}
	return misfit(c.files[0].name, "embed_tokens.weight", "no tensor of that name under any known prefix", "one of "+
		strings.Join(prefixes, ", ")+" in front of it")
}

// findConvention reads the form off the first conv1d: [C,K,1] is converted, [C,1,K] is raw. All layers must agree,
// because the norms follow the same rule and a mix would shift half of them. A network without such layers has one
// form.
func (c *Checkpoint) findConvention() error {
	var first *Tensor
	names := make([]string, 0, len(c.tensors))
	for name := range c.tensors {
		if strings.HasPrefix(name, c.prefix) && strings.HasSuffix(name, ".linear_attn.conv1d.weight") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		t := c.tensors[name]
		if len(t.Shape) != 3 || (t.Shape[1] == 1) == (t.Shape[2] == 1) {
			return misfit(t.File, name, fmt.Sprintf("shape %v", t.Shape), "[channels, 1, taps] (Hugging Face) or "+
				"[channels, taps, 1] (MLX)")
		}
		raw := t.Shape[2] != 1
		if first != nil && raw != c.raw {
			return misfit(t.File, name, fmt.Sprintf("shape %v", t.Shape), fmt.Sprintf("the form of %s, which is %v",
				first.Name, first.Shape))
		}
		if first == nil {
			first, c.raw = &t, raw
		}
	}
	return nil
}

func (c *Checkpoint) tensor(name string) (Tensor, error) {
	t, ok := c.tensors[name]
	if !ok {
		return t, misfit(c.fileFor(name), name, "no such tensor", "it, in this checkpoint")
	}
	return t, nil
}

// fileFor names the file in which a missing tensor would be looked for: that of its closest relative by name.
func (c *Checkpoint) fileFor(name string) string {
	for path := name; path != ""; {
		cut := strings.LastIndexByte(path, '.')
		if cut < 0 {
			break
		}
		path = path[:cut]
		best := ""
		for other, t := range c.tensors {
			if strings.HasPrefix(other, path+".") && (best == "" || t.File < best) {
				best = t.File
			}
		}
		if best != "" {
			return best
		}
	}
	return c.files[0].name
}
