package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"slipway/mtphead"
)

// MTP is the multi-token prediction head of a checkpoint: one full-attention layer with its own norms and a projection
// of [embedding ; hidden]. Module names are those of the published files without "mtp.": "fc", "layers.0.mlp.up_proj",
// ...
type MTP struct {
	c       *Checkpoint
	prefix  string // "mtp.", "language_model.mtp." or "" in a standalone sidecar
	sidecar *Checkpoint
	shift   bool // norms are stored zero-centred
}

// MTP returns the checkpoint's head, nil when it ships none.
func (c *Checkpoint) MTP() *MTP { return c.mtp }

// Matrix returns a linear layer of the head. Its quantisation is read from the tensors alone: sidecars are often
// quantised otherwise than the trunk that config.json describes.
func (m *MTP) Matrix(module string, out, in int) (Matrix, error) {
	return m.source().matrix(m.prefix+module, out, in, false)
}

// Norm returns the factors of one of the head's norms, corrected for its form. [n] f32.
func (m *MTP) Norm(module string, n int) ([]float32, error) {
	return m.source().norm(m.prefix+module+".weight", n, m.shift)
}

func (m *MTP) source() *Checkpoint {
	if m.sidecar != nil {
		return m.sidecar
	}
	return m.c
}

// mtpConfig holds the fields by which MLX conversions describe a sidecar.
type mtpConfig struct {
	Extra struct {
		File string `json:"mtp_file"`
	} `json:"mlx_lm_extra_tensors"`
	NormEncoding string `json:"mtplx_mtp_norm_encoding"`
	Quantization *struct {
		Mode string `json:"mode"`
	} `json:"mtplx_mtp_quantization"`
	Contract struct {
		Base   string `json:"base_hidden_variant"`
		Hidden string `json:"hidden_variant"`
		Order  string `json:"concat_order"`
	} `json:"mtplx_mtp_contract"`
}

// sidecarNames are looked for in this order when config.json names none.
var sidecarNames = []string{mtphead.FileName, "mtp/weights.safetensors", "model-mtp.safetensors"}

func (c *Checkpoint) findMTP() (*MTP, error) {
	var config mtpConfig
	if err := json.Unmarshal(c.Config, &config); err != nil {
		return nil, misfit("config.json", "mlx_lm_extra_tensors, mtplx_*", err.Error(), "the fields of an MTP sidecar")
	}
	m := &MTP{c: c}
	if prefix, ok := c.mtpPrefix("mtp.", "language_model.mtp.", "model.mtp.", "model.language_model.mtp."); ok &&
		config.Extra.File == "" {
		m.prefix = prefix
	} else if found, err := c.openSidecar(m, c.Dir, config.Extra.File); !found || err != nil {
		return nil, err
	}
	if err := config.check(); err != nil {
		return nil, err
	}
	var err error
	m.shift, err = m.storedZeroCentred(config.NormEncoding)
	return m, err
}

// UseHead takes the MTP head in another folder instead of the checkpoint's own. Its norms tell their form themselves.
func (c *Checkpoint) UseHead(dir string) error {
	m := &MTP{c: c}
	switch found, err := c.openSidecar(m, dir, ""); {
	case err != nil:
		return err
	case !found:
		return misfit(mtphead.FileName, "", "no such file in "+dir, "an MTP head")
	}
	var err error
	m.shift, err = m.storedZeroCentred("")
	c.mtp = m
	return err
}

func (c *Checkpoint) mtpPrefix(candidates ...string) (string, bool) {
	for _, p := range candidates {
		if _, ok := c.tensors[p+"fc.weight"]; ok {
			return p, true
		}
	}
	return "", false
}

func (c *Checkpoint) openSidecar(m *MTP, dir, named string) (bool, error) {
	names := sidecarNames
	if named != "" {
		names = []string{named}
	}
	for _, name := range names {
		if named == "" {
			if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); errors.Is(err, fs.ErrNotExist) {
				continue
			}
		}
		side := &Checkpoint{Dir: dir, tensors: map[string]Tensor{}}
		err := side.addFile(name, nil)
		c.files = append(c.files, side.files...) // closed with the checkpoint, also after an error
		if err != nil {
			return false, err
		}
		prefix, ok := side.mtpPrefix("mtp.", "language_model.mtp.", "")
		if !ok {
			return false, misfit(name, "fc.weight", "no such tensor, nor mtp.fc.weight", "an MTP head")
		}
		m.prefix, m.sidecar = prefix, side
		return true, nil
	}
	return false, nil
}

// check refuses wirings other than the one that the model computes.
func (k mtpConfig) check() error {
	for _, f := range []struct{ name, found, wanted string }{
		{"base_hidden_variant", k.Contract.Base, "post_norm"},
		{"hidden_variant", k.Contract.Hidden, "post_norm"},
		{"concat_order", k.Contract.Order, "embedding_hidden"},
	} {
		if f.found != "" && f.found != f.wanted {
			return misfit("config.json", "mtplx_mtp_contract."+f.name, fmt.Sprintf("%q", f.found),
				fmt.Sprintf("%q", f.wanted))
		}
	}
	if q := k.Quantization; q != nil && q.Mode != "" && q.Mode != "affine" {
		return misfit("config.json", "mtplx_mtp_quantization.mode", fmt.Sprintf("%q", q.Mode), `"affine"`)
	}
	return nil
}

// storedZeroCentred decides whether 1 must be added to the head's norms: by the field, if there is one; by the trunk's
// form, if the head lies in a trunk file; else by the mean values.
func (m *MTP) storedZeroCentred(encoding string) (bool, error) {
	switch encoding {
	case "delta", "delta_plus_one", "mlx_delta":
		return true, nil
	case "":
	default:
		if !strings.Contains(encoding, "delta") {
			return false, nil
		}
		return false, misfit("config.json", "mtplx_mtp_norm_encoding", fmt.Sprintf("%q", encoding),
			"delta, delta_plus_one or mlx_delta for zero-centred norms")
	}
	if m.sidecar == nil && m.inTrunkFile() {
		return m.c.raw, nil
	}
	norms := map[string][]float32{}
	for name, t := range m.source().tensors {
		if strings.HasPrefix(name, m.prefix) && len(t.Shape) == 1 && strings.Contains(name, "norm") &&
			t.DType.IsFloat() {
			norms[name] = Floats(nil, t.DType, t.Data)
		}
	}
	return mtphead.ZeroCentred(norms), nil
}

// inTrunkFile reports whether the head's file also holds trunk tensors: a file of its own is a sidecar even if an index
// lists it.
func (m *MTP) inTrunkFile() bool {
	head := m.c.tensors[m.prefix+"fc.weight"].File
	for name, t := range m.c.tensors {
		if t.File == head && strings.HasPrefix(name, m.c.prefix) && !strings.HasPrefix(name, m.prefix) {
			return true
		}
	}
	return false
}
