package host

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway/engine/draft"
	"slipway/engine/draft/dflash"
	"slipway/engine/families"
	"slipway/engine/memory/disk"
	"slipway/engine/model"
	"slipway/engine/model/arch"
	"slipway/engine/text"
	"slipway/engine/weights"
)

// draftKind is a draft that a model can be opened with.
type draftKind struct {
	name    string
	network model.Draft // what the network loads for it
	most    int         // tokens at a time
	usual   int
}

// drafts by their names in settings, that of no draft first. By default an MTP head proposes one token, which gains
// least and
// costs least, as on Metal more than one rarely pays; a DFlash2 draft proposes three, as blocks of more than 4 rows
// cost
// more to verify than they gain.
var drafts = []draftKind{
	{name: "none"},
	{name: "mtp", network: model.DraftMTP, most: draft.MostDepth, usual: 1},
	{name: dflash2, most: draft.MostTokens, usual: 3},
}

const dflash2 = "dflash2"

// Drafts are the drafts that serve takes, the one of no draft first.
func Drafts() (names []string) {
	for _, d := range drafts {
		names = append(names, d.name)
	}
	return names
}

// draft is the kind of the settings.
func (s Settings) draft() draftKind {
	i := slices.IndexFunc(drafts, func(d draftKind) bool { return d.name == cmp.Or(s.Draft, drafts[0].name) })
	return drafts[max(0, i)]
}

// MostDraftTokens bounds how many tokens any draft proposes at a time.
const MostDraftTokens = draft.MostTokens

// checkDraft refuses a draft that nothing here proposes with.
func (s Settings) checkDraft() error {
	d := s.draft()
	switch {
	case s.Draft != "" && s.Draft != d.name:
		return refuse("--draft %s: there are %s", s.Draft, strings.Join(Drafts(), ", "))
	case s.DraftTokens != 0 && d.most == 0:
		return refuse("--draft-tokens %d: nothing drafts; give --draft mtp or %s too", s.DraftTokens, dflash2)
	case s.DraftTokens < 0 || s.DraftTokens > d.most:
		return refuse("--draft-tokens %d: %s proposes 1 to %d tokens at a time", s.DraftTokens, d.name, d.most)
	case s.DraftDir != "" && d.name != dflash2:
		return refuse("--draft-dir %s: it is the folder of a %s draft; give --draft %s too", s.DraftDir, dflash2,
			dflash2)
	case s.DraftBits != 0 && d.name != dflash2:
		return refuse("--draft-bits %d: they are of a %s draft; give --draft %s too", s.DraftBits, dflash2, dflash2)
	case s.DraftBits != 0 && s.DraftBits != 4 && s.DraftBits != 16:
		return refuse("--draft-bits %d: there are 4 and 16", s.DraftBits)
	}
	return nil
}

// draftFolder is where a model's draft is looked for: beside its files, else in a folder of its own.
func (s Settings) draftFolder() (string, error) {
	if s.DraftDir != "" {
		return s.DraftDir, nil
	}
	if weights.DraftBeside(s.ModelDir) {
		return s.ModelDir, nil
	}
	dir := filepath.Join(s.ModelDir, dflash2)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", refuse("--draft %s: there is no draft in %s; name its folder with --draft-dir, or leave --draft out",
			dflash2, s.ModelDir)
	}
	return dir, nil
}

// openDraft opens the DFlash2 draft of the settings and refuses one that is not for this model. The model can be served
// without.
func (h *Host) openDraft(config *arch.Config) (err error) {
	if h.s.draft().name != dflash2 {
		return nil
	}
	dir, err := h.s.draftFolder()
	if err != nil {
		return err
	}
	if h.draftFiles, err = dflash.Open(dir); err == nil {
		err = h.fits(dir, config)
	}
	return refuseDraft(dir, err)
}

func (h *Host) fits(dir string, config *arch.Config) error {
	c := h.draftFiles.Config
	if err := c.Fits(dflash.Target{Hidden: config.Hidden, Layers: len(config.Layers), Vocab: config.VocabSize,
		Tokens: h.text.Tokenizer.VocabSize()}); err != nil {
		return err
	}
	if most := c.Block - 1; h.s.DraftTokens > most {
		return refuse("--draft-tokens %d: this draft proposes 1 to %d tokens at a time", h.s.DraftTokens, most)
	}
	if dir == h.s.ModelDir {
		return nil
	}
	return h.sameTokenizer(filepath.Join(dir, "tokenizer.json"))
}

// sameTokenizer compares the tokens of a draft's own tokenizer, if it brings one, with the model's.
func (h *Host) sameTokenizer(path string) error {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	family, err := families.Of(h.checkpoint.Config)
	if err != nil {
		return err
	}
	other, err := text.LoadTokenizer(family.Text, path)
	if err != nil {
		return fmt.Errorf("its %w", err)
	}
	mine := h.text.Tokenizer
	if other.VocabSize() != mine.VocabSize() {
		return fmt.Errorf("it is made for another tokenizer, of %d tokens: this model has %d", other.VocabSize(),
			mine.VocabSize())
	}
	for id := range int32(mine.VocabSize()) {
		if string(other.TokenBytes(id)) != string(mine.TokenBytes(id)) {
			return fmt.Errorf("it is made for another tokenizer: its token %d is %q, this model's %q", id,
				other.TokenBytes(id),
				mine.TokenBytes(id))
		}
	}
	return nil
}

// refuseDraft words why a draft cannot be used; nil stays nil.
func refuseDraft(dir string, err error) error {
	var refused *SettingError
	if err == nil || errors.As(err, &refused) {
		return err
	}
	return refuse("--draft %s: the draft in %s cannot be used: %v. The model works without it: leave --draft out",
		dflash2, dir, err)
}

// quantizesDraft tells whether float matrices of the draft become 4 bit while they are loaded.
func (h *Host) quantizesDraft() bool { return h.s.DraftBits != 16 }

// loadDraft puts the opened draft on the device, beside the network whose embedding and head it shares.
func (h *Host) loadDraft(n *model.Network) (err error) {
	if h.draftFiles == nil {
		return nil
	}
	h.draft, err = dflash.Load(h.device, h.draftFiles, dflash.Options{Embedding: n.Embedding(), Head: n.Head(),
		Sequences: h.s.Parallel, Quantize: h.quantizesDraft()})
	var misfit *weights.MisfitError
	if other := new(dflash.MisfitError); errors.As(err, &misfit) || errors.As(err, &other) {
		return refuseDraft(h.draftFiles.Dir(), err)
	}
	return err
}

// draftOptions adds to a network's options what the draft needs of it.
func (h *Host) draftOptions(o *model.Options) {
	if h.draftFiles != nil {
		c := h.draftFiles.Config
		o.TapLayers, o.SectionRow, o.SectionRows = c.Taps, c.RowBytes(), c.Window
	}
}

// mappings are the files that a device may read in place.
func (h *Host) mappings() [][]byte {
	all := h.checkpoint.Mappings()
	if h.draftFiles != nil {
		all = append(all, h.draftFiles.Mappings(h.quantizesDraft())...)
	}
	return all
}

// proposer is what drafts replies; nil: nothing does.
func (h *Host) proposer() draft.Proposer {
	switch {
	case h.s.draft().network == model.DraftMTP:
		return draft.NewMTP(h.network, h.network.Config().Hidden, draft.MostDepth)
	case h.draftFiles != nil:
		c := h.draftFiles.Config
		p := dflash.NewProposer(c, func() *dflash.Network { return h.draft }, c.Block-1)
		p.Off = func(err error) { h.log.Warn("drafting is off", "draft", dflash2, "error", err.Error()) }
		return p
	}
	return nil
}

// draftTokens is how many tokens are proposed at a time.
func (h *Host) draftTokens() int {
	tokens := cmp.Or(h.s.DraftTokens, h.s.draft().usual)
	if h.draftFiles != nil {
		tokens = min(tokens, h.draftFiles.Config.Block-1)
	}
	return tokens
}

// draftSection says what files of restore points hold of the draft. An MTP head is of the states' own files, so its key
// is theirs; context rows also depend on the draft's.
func (h *Host) draftSection() (disk.DraftOptions, error) {
	n := h.network.Network
	switch {
	case h.draftFiles != nil:
		files, err := filesDigest(h.draftFiles.Dir(), nil)
		return disk.DraftOptions{Key: fmt.Sprintf("dflash2 %s %d bits, %+v", files, h.s.DraftBits, h.key),
			DFlash2:   true,
			SlotBytes: n.SlotBytes(), MostSlots: h.draftFiles.Config.Window}, err
	case n.SlotBytes() > 0:
		return disk.DraftOptions{Key: fmt.Sprintf("mtp %+v", h.key), SlotBytes: n.SlotBytes(),
			MostSlots: n.WindowTokens()}, nil
	}
	return disk.DraftOptions{}, nil
}
