package host

import (
	"fmt"

	"slipway/engine/draft"
	"slipway/engine/memory/disk"
	"slipway/engine/model"
)

// drafts are the drafts that a model can be opened with, by their names in settings.
var drafts = map[string]model.Draft{"": model.NoDraft, "none": model.NoDraft, "mtp": model.DraftMTP}

// draftSection says what files of restore points hold of the draft. Its key is the states' own: the head is of the same
// files.
func (h *Host) draftSection() disk.DraftOptions {
	n := h.network.Network
	if n.SlotBytes() == 0 {
		return disk.DraftOptions{}
	}
	return disk.DraftOptions{Key: fmt.Sprintf("mtp %+v", h.key), SlotBytes: n.SlotBytes(), MostSlots: n.WindowTokens()}
}

// MostDraftTokens and DefaultDraftTokens bound and choose how many tokens an MTP head proposes at a time. One gains
// least and costs least: on Metal more than one rarely pays.
const (
	MostDraftTokens    = draft.MostDepth
	DefaultDraftTokens = 1
)

// Drafts are the drafts that serve takes, the one of no draft first.
func Drafts() []string { return []string{"none", "mtp"} }

// proposer is what drafts replies; nil: nothing does.
func (h *Host) proposer() draft.Proposer {
	if drafts[h.s.Draft] != model.DraftMTP {
		return nil
	}
	return draft.NewMTP(h.network, h.network.Config().Hidden, MostDraftTokens)
}

// checkDraft refuses a draft that nothing here proposes with.
func (s Settings) checkDraft() error {
	if _, there := drafts[s.Draft]; !there {
		return refuse("--draft %s: there are none and mtp", s.Draft)
	}
	switch {
	case s.DraftTokens < 0 || s.DraftTokens > MostDraftTokens:
		return refuse("--draft-tokens %d: an MTP head proposes 1 to %d tokens at a time", s.DraftTokens,
			MostDraftTokens)
	case s.DraftTokens > 0 && drafts[s.Draft] == model.NoDraft:
		return refuse("--draft-tokens %d: nothing drafts; give --draft mtp too", s.DraftTokens)
	}
	return nil
}
