package host

import "slipway/engine/model"

// drafts are the drafts that a model can be opened with, by their names in settings.
var drafts = map[string]model.Draft{"": model.NoDraft, "none": model.NoDraft, "mtp": model.DraftMTP}

// checkDraft refuses a draft that nothing here proposes with.
func (s Settings) checkDraft() error {
	if _, there := drafts[s.Draft]; !there {
		return refuse("--draft %s: there are none and mtp", s.Draft)
	}
	return nil
}
