package weights

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Names of a draft's files that lie beside the model that they are for.
const (
	besideConfig  = "dflash2.json"
	besideWeights = "dflash2.safetensors"
)

// OpenDraft maps a DFlash2 draft: dflash2.json and dflash2.safetensors beside a model, else a folder of its own, in
// the published layout. Its modules are read as a trunk's are, without the optional "model." or "draft.".
func OpenDraft(dir string) (c *Checkpoint, err error) {
	c = &Checkpoint{Dir: dir, tensors: map[string]Tensor{}}
	defer func() {
		if err != nil {
			c.Close()
			c = nil
		}
	}()
	config := besideConfig
	if _, err := os.Stat(filepath.Join(dir, besideConfig)); errors.Is(err, fs.ErrNotExist) {
		config = "config.json"
	}
	if c.Config, err = readFile(dir, config); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return c, misfit(config, "", "no such file in "+dir, "the folder of a draft")
		}
		return c, err
	}
	if c.quant, err = parseQuantization(c.Config); err != nil {
		return c, err
	}
	if config == besideConfig {
		err = c.addFile(besideWeights, nil)
	} else {
		err = c.openTrunk()
	}
	if err != nil {
		return c, err
	}
	for _, prefix := range []string{"", "model.", "draft."} {
		if _, ok := c.tensors[prefix+"fc.weight"]; ok {
			c.prefix = prefix
			return c, nil
		}
	}
	return c, misfit(c.files[0].name, "fc.weight", "no such tensor", "a DFlash2 draft")
}

// DraftBeside tells whether a model's folder holds a draft too.
func DraftBeside(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, besideConfig))
	return err == nil
}

// Has tells whether a draft or a trunk has a tensor.
func (c *Checkpoint) Has(name string) bool {
	_, ok := c.tensors[c.prefix+name]
	return ok
}

// FloatMatrix is Floats [out, in] as it is in the file, of which single rows are read.
func (c *Checkpoint) FloatMatrix(name string, out, in int) (Matrix, error) {
	t, err := c.tensor(c.prefix + name)
	if err != nil {
		return Matrix{}, err
	}
	if !t.DType.IsFloat() {
		return Matrix{}, misfit(t.File, t.Name, "dtype "+string(t.DType), "F32, F16 or BF16")
	}
	return Matrix{Name: t.Name, Out: out, In: in, DType: t.DType, Data: t.Data}, wantShape(t, out, in)
}

// Tensors is one safetensors file without a model's conventions.
type Tensors struct{ c *Checkpoint }

// OpenTensors maps one file of a folder.
func OpenTensors(dir, name string) (*Tensors, error) {
	c := &Checkpoint{Dir: dir, tensors: map[string]Tensor{}}
	if err := c.addFile(name, nil); err != nil {
		c.Close()
		return nil, err
	}
	return &Tensors{c}, nil
}

// Tensor gives a tensor by its name in the file.
func (t *Tensors) Tensor(name string) (Tensor, bool) {
	found, ok := t.c.tensors[name]
	return found, ok
}

// Close unmaps the file.
func (t *Tensors) Close() error { return t.c.Close() }

// All gives every tensor in the order of their names.
func (t *Tensors) All() (all []Tensor) {
	for _, name := range slices.Sorted(maps.Keys(t.c.tensors)) {
		all = append(all, t.c.tensors[name])
	}
	return all
}
