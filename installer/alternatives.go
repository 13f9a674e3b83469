package installer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"slipway/installer/machine"
	"slipway/manifests"
	"slipway/profiles"
	"slipway/units"
)

// Alternative is a model that a person may want instead of the chosen one.
type Alternative struct {
	Model    string `json:"model"`
	Fits     bool   `json:"fits"`
	Sentence string `json:"sentence"` // what it would need, or how to choose it
}

// alternatives are the next smaller and the next larger model, with what would make them fit. Where the chosen one is
// the embedded toy, the smallest real model comes first.
func alternatives(chosen choice, facts machine.Facts, k known, can profiles.Capabilities) []Alternative {
	others := slices.DeleteFunc(slices.Clone(k.manifests()), func(m manifests.Manifest) bool {
		return m.Embedded || m.Revision == "" || m.ID == chosen.manifest.ID
	})
	slices.SortFunc(others, func(a, b manifests.Manifest) int {
		return cmp.Compare(a.Geometry.WeightsBytes, b.Geometry.WeightsBytes)
	})
	larger, _ := slices.BinarySearchFunc(others, chosen.manifest.Geometry.WeightsBytes,
		func(m manifests.Manifest, bytes int64) int { return cmp.Compare(m.Geometry.WeightsBytes, bytes) })
	all := []Alternative{}
	if larger > 0 {
		all = append(all, alternative("smaller", others[larger-1], chosen, facts, can))
	}
	if larger < len(others) {
		all = append(all, alternative("larger", others[larger], chosen, facts, can))
	}
	return all
}

func alternative(which string, m manifests.Manifest, chosen choice, facts machine.Facts,
	can profiles.Capabilities) Alternative {
	host, device := facts.Sizing(), chosen.sized.Device
	if device == "cpu" {
		host.CapBytes = 0
	}
	c := choice{manifest: m, profile: chosen.profile}
	c.size(host, device, can, chosen.input.UserBudgetBytes)
	a := Alternative{Model: m.ID, Fits: c.result != nil}
	switch {
	case !a.Fits:
		a.Sentence = fmt.Sprintf("The next %s model, %s, does not fit here: %s", which, m.ID,
			needs(chosen.profile, m, host, can.On(device)))
	case device == "cpu":
		a.Sentence = fmt.Sprintf("A real model for this processor: --model %s (%s to download). %s", m.ID,
			units.Bytes(m.DownloadBytes), cpuSpeed(m))
	default:
		a.Sentence = fmt.Sprintf("The next %s model, %s, fits too, with a context of %s tokens: --model %s.", which,
			m.ID,
			units.Count(c.sized.WindowTokens), m.ID)
	}
	return a
}

// needs says how much memory the smallest window of a model takes.
func needs(profile profiles.Profile, m manifests.Manifest, host profiles.Machine, can profiles.Capabilities) string {
	_, err := profiles.SizeUpTo(profiles.Input{Model: m.Candidate(), Profile: profile, Machine: host,
		Sequences: sequences, Capabilities: &can})
	if noFit, ok := errors.AsType[*profiles.NoFitError](err); ok {
		return fmt.Sprintf("it needs %s and may have %s.", units.Bytes(noFit.NeedBytes), units.Bytes(noFit.BudgetBytes))
	}
	return "see slipway models list."
}
