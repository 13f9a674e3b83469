package host

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"slipway/engine/draft"
	"slipway/engine/draft/dflash"
	"slipway/engine/families"
	"slipway/engine/memory/disk"
	"slipway/engine/model"
	"slipway/engine/model/arch"
	"slipway/engine/text"
	"slipway/engine/weights"
	"slipway/profiles"
)

// opener is how a kind of draft is opened. Its name, limits and words are in profiles.
type opener struct {
	network  model.Draft                                    // what the network loads for it
	open     func(h *Host, config *arch.Config) error       // opens files of its own; nil: it has none
	proposer func(h *Host, most int) draft.Proposer         // of at most so many tokens
	section  func(h *Host) (o disk.DraftOptions, err error) // what files of restore points hold of it
}

// openers by kind; nothing drafts without one.
var openers = map[profiles.DraftKind]opener{
	profiles.MTP: {network: model.DraftMTP, open: (*Host).openHead, proposer: (*Host).proposeMTP,
		section: (*Host).sectionMTP},
	profiles.DFlash2: {open: (*Host).openDFlash2, proposer: (*Host).proposeDFlash2, section: (*Host).sectionDFlash2},
}

const dflash2 = string(profiles.DFlash2)

// draft is the kind of the settings.
func (s Settings) draft() profiles.Draft {
	d, ok := profiles.DraftOf(profiles.DraftKind(s.Draft))
	if !ok {
		d, _ = profiles.DraftOf(profiles.NoDraft)
	}
	return d
}

func (h *Host) opener() opener { return openers[h.s.draft().Kind] }

// checkDraft refuses a draft that nothing here proposes with.
func (s Settings) checkDraft() error {
	d := s.draft()
	switch {
	case s.Draft != "" && s.Draft != string(d.Kind):
		return refuse("--draft %s: there are %s", s.Draft, strings.Join(profiles.DraftNames(), ", "))
	case s.DraftTokens != 0 && d.Most == 0:
		return refuse("--draft-tokens %d: nothing drafts; --draft is %s", s.DraftTokens, profiles.DraftChoices())
	case s.DraftTokens < 0 || s.DraftTokens > d.Most:
		return refuse("--draft-tokens %d: %s proposes 1 to %d tokens at a time", s.DraftTokens, d.Kind, d.Most)
	case s.DraftDir != "" && d.Most == 0:
		return refuse("--draft-dir %s: nothing drafts; --draft is %s", s.DraftDir, profiles.DraftChoices())
	case s.DraftBits != 0 && d.Kind != profiles.DFlash2:
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

// openDraft opens the files of the draft of the settings, if it has its own, and refuses those that are not for this
// model. The model can be served without.
func (h *Host) openDraft(config *arch.Config) error {
	if open := h.opener().open; open != nil {
		return open(h, config)
	}
	return nil
}

// openHead takes the MTP head of the settings' folder, if they name one, in place of the checkpoint's own.
func (h *Host) openHead(*arch.Config) error {
	if h.s.DraftDir == "" {
		return nil
	}
	return h.refuseDraft(h.s.DraftDir, h.checkpoint.UseHead(h.s.DraftDir))
}

func (h *Host) openDFlash2(config *arch.Config) error {
	dir, err := h.s.draftFolder()
	if err != nil {
		return err
	}
	if h.draftFiles, err = dflash.Open(dir); err == nil {
		err = h.fits(dir, config)
	}
	return h.refuseDraft(dir, err)
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
func (h *Host) refuseDraft(dir string, err error) error {
	var refused *SettingError
	if err == nil || errors.As(err, &refused) {
		return err
	}
	return refuse("--draft %s: the draft in %s cannot be used: %v. The model works without it: leave --draft out",
		h.s.Draft, dir, err)
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
		return h.refuseDraft(h.draftFiles.Dir(), err)
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
	if proposer := h.opener().proposer; proposer != nil {
		return proposer(h, h.s.draft().Most)
	}
	return nil
}

func (h *Host) proposeMTP(most int) draft.Proposer {
	return draft.NewMTP(h.network, h.network.Config().Hidden, most)
}

func (h *Host) proposeDFlash2(most int) draft.Proposer {
	c := h.draftFiles.Config
	p := dflash.NewProposer(c, func() *dflash.Network { return h.draft }, min(most, c.Block-1))
	p.Off = func(err error) { h.log.Warn("drafting is off", "draft", dflash2, "error", err.Error()) }
	return p
}

// draftTokens is how many tokens are proposed at a time.
func (h *Host) draftTokens() int {
	tokens := cmp.Or(h.s.DraftTokens, h.s.draft().Usual)
	if h.draftFiles != nil {
		tokens = min(tokens, h.draftFiles.Config.Block-1)
	}
	return tokens
}

// draftSection says what files of restore points hold of the draft.
func (h *Host) draftSection() (disk.DraftOptions, error) {
	if section := h.opener().section; section != nil {
		return section(h)
	}
	return disk.DraftOptions{}, nil
}

// sectionMTP: an MTP head is of the states' own files, so its key is theirs, unless it has a folder of its own.
func (h *Host) sectionMTP() (o disk.DraftOptions, err error) {
	n, files := h.network.Network, ""
	if h.s.DraftDir != "" {
		if files, err = filesDigest(h.s.DraftDir, nil); err != nil {
			return o, err
		}
		files += " "
	}
	return disk.DraftOptions{Key: fmt.Sprintf("mtp %s%+v", files, h.key), SlotBytes: n.SlotBytes(),
		MostSlots: n.WindowTokens()}, nil
}

// sectionDFlash2: context rows also depend on the draft's files.
func (h *Host) sectionDFlash2() (disk.DraftOptions, error) {
	files, err := filesDigest(h.draftFiles.Dir(), nil)
	return disk.DraftOptions{Key: fmt.Sprintf("dflash2 %s %d bits, %+v", files, h.s.DraftBits, h.key), DFlash2: true,
		SlotBytes: h.network.Network.SlotBytes(), MostSlots: h.draftFiles.Config.Window}, err
}
