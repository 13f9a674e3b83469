package profiles

import (
	"errors"
	"fmt"
	"slices"
)

// ComfortableTokens is the window below which the next smaller model is proposed: a coding assistant's instructions,
// tools and a few files take tens of thousands of tokens.
const ComfortableTokens = 65536

// Proposal is a model, a profile, a device, and why. Reasons are sentences in the order in which they decided.
type Proposal struct {
	ModelID   string   `json:"model"`
	ProfileID string   `json:"profile"`
	Device    string   `json:"device"` // "metal" or "cpu"
	Result    Result   `json:"sizing"`
	Reasons   []string `json:"reasons"`
	Why       string   `json:"why"` // the model was chosen, in one short sentence
}

// Propose picks the largest model that leaves a comfortable window under the first profile (exact: nothing is
// approximated unless a person asks for it), or else the one with the largest window. Without Metal, or with a server
// that has no Metal device, it proposes the embedded model on the CPU. capabilities nil: the server is not known yet.
// An experimental profile is taken only when it is the only one handed in, which means that a person asked for it.
// One sequence at a time is meant; ProposeFor takes another number.
func Propose(machine Machine, models []Candidate, profiles []Profile, capabilities *Capabilities) (Proposal, error) {
	return ProposeFor(machine, models, profiles, capabilities, 1, 0)
}

// ProposeFor is Propose for at most so many sequences answered at once, by SizeUpTo, which the plan sizes with too, and
// for a budget that was asked for (0: none).
func ProposeFor(machine Machine, models []Candidate, profiles []Profile, capabilities *Capabilities, sequences int,
	userBudgetBytes int64) (Proposal, error) {
	profile, err := firstHonoured(profiles, capabilities)
	if err != nil {
		return Proposal{}, err
	}
	size := func(device string, machine Machine, model Candidate) (Result, error) {
		in := Input{Model: model, Profile: profile, Machine: machine, Sequences: sequences,
			UserBudgetBytes: userBudgetBytes}
		if capabilities != nil {
			on := capabilities.On(device)
			in.Capabilities = &on
		}
		return SizeUpTo(in)
	}
	embedded := func(device, why string, reasons ...string) (Proposal, error) {
		for _, model := range models {
			if !model.Embedded {
				continue
			}
			r, err := size(device, machine, model)
			return Proposal{ModelID: model.ID, ProfileID: profile.ID, Device: device, Result: r, Why: why,
				Reasons: append(reasons, r.Sentence, profile.Price(r.KVFormat))}, err
		}
		return Proposal{}, errors.New("there is no embedded model")
	}
	onCPU := func(why string) (Proposal, error) {
		machine.CapBytes = 0 // Metal's limit does not bind the CPU
		return embedded("cpu", why, why)
	}
	switch {
	case machine.CapBytes == 0:
		return onCPU("This machine has no Metal, so the model runs on the CPU.")
	case capabilities != nil && !slices.Contains(capabilities.Devices, "metal"):
		return onCPU("This server has no Metal device, so the model runs on the CPU.")
	}
	bySize := slices.Clone(models)
	slices.SortFunc(bySize, func(a, b Candidate) int {
		return int(min(max(b.Geometry.WeightsBytes-a.Geometry.WeightsBytes, -1), 1))
	})
	best := Proposal{ProfileID: profile.ID, Device: "metal"}
	for _, model := range bySize {
		if model.Embedded {
			continue
		}
		r, err := size("metal", machine, model)
		var noFit *NoFitError
		switch {
		case errors.As(err, &noFit):
			best.Reasons = append(best.Reasons, noFit.Error())
			continue
		case err != nil:
			return Proposal{}, err
		}
		if r.WindowTokens >= min(ComfortableTokens, model.Geometry.MaxPositions) {
			best.ModelID, best.Result = model.ID, r
			best.Why = fmt.Sprintf("The largest model with a context of %s tokens or more here.",
				grouped(ComfortableTokens))
			best.Reasons = append(best.Reasons, best.Why, r.Sentence, profile.Price(r.KVFormat))
			return best, nil
		}
		best.Reasons = append(best.Reasons, fmt.Sprintf("%s would have a context of only %s tokens.", model.Title,
			grouped(r.WindowTokens)))
		if r.WindowTokens > best.Result.WindowTokens {
			best.ModelID, best.Result = model.ID, r
		}
	}
	if best.ModelID == "" {
		const why = "No real model fits the memory of this machine."
		return embedded("metal", why, append(best.Reasons, why)...)
	}
	best.Why = fmt.Sprintf("No model has a context of %s tokens here; this one has the largest.",
		grouped(ComfortableTokens))
	best.Reasons = append(best.Reasons, best.Why, best.Result.Sentence, profile.Price(best.Result.KVFormat))
	return best, nil
}

func firstHonoured(profiles []Profile, capabilities *Capabilities) (Profile, error) {
	var why []string
	for _, p := range profiles {
		if p.Experimental && len(profiles) > 1 {
			continue // never without being asked for
		}
		var missing []string
		if capabilities != nil {
			missing = p.Unhonoured(*capabilities)
		}
		if len(missing) > 0 {
			why = append(why, missing...)
			continue
		}
		return p, nil
	}
	return Profile{}, fmt.Errorf("no profile can be offered: %s", list(why))
}
