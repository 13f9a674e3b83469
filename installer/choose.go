package installer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"slipway/installer/machine"
	"slipway/installer/plan"
	"slipway/installer/store"
	"slipway/manifests"
	"slipway/profiles"
	"slipway/units"
)

// sequences is how many replies the server writes at once, at most; each has a whole window.
const sequences = 2

type choice struct {
	manifest manifests.Manifest
	profile  profiles.Profile
	proposal profiles.Proposal
	lock     *manifests.Lock
	model    plan.Model
	draft    *draftFiles // nil: there is no draft, or its files are among the model's
	sized    plan.Profile
	input    profiles.Input   // that it was sized from
	unproven bool             // bytes may be used for which only the hub vouches
	needs    int64            // bytes of the GPU's memory with every window full; 0: it does not want that memory
	result   *profiles.Result // that sized was made of; nil: nothing fits
	notFit   string
	problem  string // why the model cannot be brought
}

// draftFiles is a draft of a repository of its own.
type draftFiles struct {
	manifest manifests.Manifest
	files    plan.Model
	lock     *manifests.Lock // nil: not known yet
}

// choose picks model and profile, what was asked for or what sizing proposes among all pinned models, and sizes them
// for what the server can.
func choose(in Input, facts machine.Facts, k known, capabilities profiles.Capabilities) (choice, error) {
	// Where a head was asked for that cannot be proven, the plan says what it needs.
	c := choice{unproven: in.AcceptUnproven || in.Draft != ""}
	host := facts.Sizing()
	if err := checkDraft(in.Draft); err != nil {
		return c, err
	}
	offered := profiles.All()
	if in.Profile != "" {
		asked, err := askedProfile(in.Profile, capabilities)
		if err != nil {
			return c, err
		}
		asked.Experimental = false // it was asked for by name
		offered = []profiles.Profile{asked}
	}
	for i := range offered {
		offered[i] = offered[i].WithDraft(profiles.DraftKind(in.Draft))
	}
	if in.Model == "" {
		proposal, err := profiles.ProposeFor(host, pinned(k, c.unproven), offered, &capabilities, sequences,
			in.MemoryBytes)
		if err != nil {
			return c, &ChoiceError{err.Error()}
		}
		c.proposal = proposal
		in.Model = proposal.ModelID
		if in.Profile == "" {
			in.Profile = proposal.ProfileID
		}
	}
	var ok bool
	if c.manifest, ok = k.manifest(in.Model); !ok {
		return c, &ChoiceError{fmt.Sprintf("there is no model %q; slipway models list names those that there are",
			in.Model)}
	}
	if in.Profile == "" {
		in.Profile = "exact"
	}
	var err error
	if c.profile, err = askedProfile(in.Profile, capabilities); err != nil {
		return c, err
	}
	c.profile = c.profile.WithDraft(profiles.DraftKind(in.Draft))
	device := "cpu"
	if host.CapBytes > 0 && slices.Contains(capabilities.Devices, "metal") && c.proposal.Device != "cpu" {
		device = "metal"
	} else {
		host.CapBytes = 0
	}
	c.size(host, device, capabilities, in.MemoryBytes)
	if in.Draft != "" && c.result != nil && c.sized.Draft != in.Draft {
		why := slices.IndexFunc(c.result.Reductions, func(r string) bool { return strings.HasPrefix(r, "no draft") })
		return c, &ChoiceError{fmt.Sprintf("--draft %s is not possible: %s", in.Draft, c.result.Reductions[why])}
	}
	if in.ModelSetUp && c.proposal.Why == askedFor {
		kept := "The model that is set up."
		if k.settings == nil {
			kept = "The model of the set-up that was interrupted."
		}
		c.proposal.Why, c.proposal.Reasons[0] = kept, kept
	}
	c.pin(in, k)
	return c, nil
}

// askedFor is why a model was chosen that was named.
const askedFor = "The model that was asked for."

// askedProfile finds a profile that the server can honour.
func askedProfile(id string, capabilities profiles.Capabilities) (profiles.Profile, error) {
	p, ok := profiles.ByID(id)
	if !ok {
		return p, &ChoiceError{fmt.Sprintf("there is no profile %q; there are %s", id,
			strings.Join(profileIDs(), ", "))}
	}
	if missing := p.Unhonoured(capabilities); len(missing) > 0 {
		return p, &ChoiceError{strings.Join(missing, "; ")}
	}
	return p, nil
}

func profileIDs() []string {
	var ids []string
	for _, p := range profiles.All() {
		ids = append(ids, p.ID)
	}
	return ids
}

// pinned are the models that can be fetched: the revision is the pin.
func pinned(k known, unproven bool) []profiles.Candidate {
	var all []profiles.Candidate
	for _, m := range k.manifests() {
		if m.Revision != "" {
			all = append(all, candidateOf(m, unproven))
		}
	}
	return all
}

// candidateOf is a model as it can be set up: without a draft that has no revision, and without a head that nothing
// proves unless such bytes may be used.
func candidateOf(m manifests.Manifest, unproven bool) profiles.Candidate {
	c := m.Candidate()
	switch d := m.Draft; {
	case d == nil:
	case d.Tensors != "" && (d.Revision == "" || d.SHA256 == "" && !unproven):
		c.Geometry.MTPLayers, c.Geometry.MTPBytes = 0, 0
	case d.Revision == "":
		c.DFlash2 = nil
	}
	return c
}

// lockOf finds a model's lock: the one that `slipway models lock` left in the home, else the one that is shipped.
func lockOf(m manifests.Manifest, k known) (manifests.Lock, bool) {
	if m.Revision == "" {
		return manifests.Lock{}, false
	}
	if root := k.root(); root != nil && !m.Embedded {
		if lock, err := store.LoadLock(root, m.Repo, m.Revision); err == nil {
			return lock, true
		}
	}
	return manifests.BundledLock(m.Repo, m.Revision)
}

func (c *choice) size(host profiles.Machine, device string, capabilities profiles.Capabilities, budgetBytes int64) {
	capabilities = capabilities.On(device)
	c.sized = plan.Profile{Name: c.profile.ID, PrefillPolicy: c.profile.Prefill.Policy, Parallel: sequences,
		Device: device}
	c.input = profiles.Input{Model: candidateOf(c.manifest, c.unproven), Profile: c.profile, Machine: host,
		Sequences: sequences, Capabilities: &capabilities, UserBudgetBytes: budgetBytes}
	result, err := profiles.SizeUpTo(c.input)
	var noFit *profiles.NoFitError
	switch {
	case errors.As(err, &noFit):
		c.notFit = noFit.Error()
		return
	case err != nil:
		c.notFit = err.Error()
		return
	}
	c.result = &result
	c.sized.WindowTokens, c.sized.KVFormat, c.sized.Draft = result.WindowTokens, string(result.KVFormat),
		string(result.Draft.Kind)
	c.sized.Parallel, c.sized.Sentence = result.Sequences, result.Sentence
	if device == "metal" {
		c.sized.BudgetBytes, c.needs = result.BudgetBytes, result.UsedBytes
	}
	if c.proposal.ModelID == "" {
		c.proposal = profiles.Proposal{ModelID: c.manifest.ID, ProfileID: c.profile.ID, Device: device, Result: result,
			Why: askedFor, Reasons: []string{askedFor, result.Sentence}}
		if len(c.profile.Approximations) > 0 {
			c.proposal.Reasons = append(c.proposal.Reasons, c.profile.Price(result.KVFormat))
		}
	}
}

// pin fills in what is fetched. A lock in this program is a decision; one in the home is only what is known so far.
func (c *choice) pin(in Input, k known) {
	if c.model, c.lock = filesOf(c.manifest, in, k); c.manifest.Revision == "" {
		c.problem = fmt.Sprintf("The manifest of %s names no revision, so nothing is downloaded.", c.manifest.ID)
		return
	}
	m, own := c.manifest.DraftFiles()
	if own && c.sized.Draft == c.manifest.Draft.Kind {
		c.draft = &draftFiles{manifest: m}
		c.draft.files, c.draft.lock = filesOf(m, in, k)
		if d := c.manifest.Draft; d.Tensors != "" {
			c.draft.files.Tensors, c.draft.files.SHA256 = d.Tensors, d.SHA256
			c.draft.files.Bytes = c.manifest.Geometry.MTPBytes
		}
	}
}

// filesOf is what a plan says of a manifest's files, with their list as far as it is known.
func filesOf(m manifests.Manifest, in Input, k known) (files plan.Model, known *manifests.Lock) {
	files = plan.Model{ID: m.ID, Title: m.Title, Repo: m.Repo, Revision: m.Revision, License: m.License.SPDX,
		Embedded: m.Embedded, Folder: store.ModelDir(m.Repo, m.Revision), Bytes: m.DownloadBytes}
	if m.Revision == "" {
		return files, nil
	}
	if lock, ok := lockOf(m, k); ok {
		known = &lock
	}
	if shipped, ok := manifests.BundledLock(m.Repo, m.Revision); ok {
		data, err := shipped.Marshal()
		if err != nil {
			panic("installer: the lock of " + m.ID + " in this program: " + err.Error())
		}
		files.LockDigest, files.Files = manifests.DigestOf(sha(data)), len(shipped.Files)
		files.Bytes = shipped.TotalBytes()
	} else {
		files.Include, files.CeilingBytes = m.Include, m.CeilingBytes()
		files.ProvenOnly = !in.AcceptUnproven
	}
	if !m.Embedded {
		files.DownloadBytes = files.Bytes
	}
	return files, known
}

// draftCost says what the draft costs: bytes to download, memory, and what is left of the context; empty without one.
func (c choice) draftCost() string {
	if c.result == nil || c.result.Draft.Kind == profiles.NoDraft {
		return ""
	}
	without := c.input
	without.Profile = without.Profile.WithDraft(profiles.NoDraft)
	alone, err := profiles.SizeUpTo(without)
	if err != nil {
		return ""
	}
	full := profiles.Load{Sequences: c.result.Sequences, RestorePoints: c.result.RestorePoints,
		Tokens: int64(c.result.WindowTokens) * int64(c.result.Sequences)}
	said := fmt.Sprintf("Draft %s takes %s of memory", c.result.Draft.Kind,
		units.GiB(c.result.Costs.ProjectedBytes(full)-alone.Costs.ProjectedBytes(full)))
	if c.draft != nil {
		said = fmt.Sprintf("%s and %s to download", said, units.Short(c.draft.files.DownloadBytes))
	}
	if lost := alone.WindowTokens - c.result.WindowTokens; lost > 0 {
		return fmt.Sprintf("%s; without it the context is %s tokens.", said, units.Count(alone.WindowTokens))
	}
	return said + "; the context is the same without it."
}

// price says what the profile costs in quality.
func (c choice) price() string { return c.profile.Price(profiles.KVFormat(c.sized.KVFormat)) }
