package installer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"slipway/installer/machine"
	"slipway/manifests"
	"slipway/profiles"
	"slipway/units"
)

// Alternative is a model that a person may want instead of the chosen one.
type Alternative struct {
	Model    string `json:"model"`
	Which    string `json:"which"` // compared with the chosen one: "smaller", "larger", or "real" beside the toy
	Fits     bool   `json:"fits"`
	Sentence string `json:"sentence"` // what it would need, or how to choose it

	DownloadBytes int64 `json:"download_bytes"` // about

	// TokensPerSecond is an estimate for this processor; 0 where the GPU would answer or the model does not fit.
	TokensPerSecond float64 `json:"estimated_tokens_per_second"`
}

// alternatives are the next smaller and the next larger model, with what would make them fit. Where the chosen one is
// the embedded toy, the smallest real model is the one.
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
		which := "larger"
		if chosen.manifest.Embedded {
			which = "real"
		}
		all = append(all, alternative(which, others[larger], chosen, facts, can))
	}
	return all
}

// labels begin the sentences on alternatives.
var labels = map[string]string{"smaller": "Smaller", "larger": "Larger", "real": "Real model"}

func alternative(which string, m manifests.Manifest, chosen choice, facts machine.Facts,
	can profiles.Capabilities) Alternative {
	host, device := facts.Sizing(), chosen.sized.Device
	if device == "cpu" {
		host.CapBytes = 0
	}
	c := choice{manifest: m, profile: chosen.profile, unproven: chosen.unproven}
	c.size(host, device, can, chosen.input.UserBudgetBytes)
	a := Alternative{Model: m.ID, Which: which, Fits: c.result != nil, DownloadBytes: m.DownloadBytes}
	switch {
	case !a.Fits:
		a.Sentence = fmt.Sprintf("%s: %s %s.", labels[which], m.ID, needs(c))
	case device == "cpu":
		a.TokensPerSecond = cpuTokensPerSecond(m)
		a.Sentence = fmt.Sprintf("%s: --model %s, %s; about %.1f tokens a second here (estimated).", labels[which],
			m.ID, units.Short(m.DownloadBytes), a.TokensPerSecond)
	default:
		a.Sentence = fmt.Sprintf("%s: --model %s, %s; context %s tokens.", labels[which], m.ID,
			units.Short(m.DownloadBytes), units.Count(c.sized.WindowTokens))
	}
	return a
}

// needs says how much memory the smallest context of a model takes that does not fit, and what would make it fit.
func needs(c choice) string {
	one := c.input
	one.Sequences = 1
	_, err := profiles.Size(one)
	noFit, ok := errors.AsType[*profiles.NoFitError](err)
	if !ok {
		return "cannot be sized: " + strings.TrimSuffix(c.notFit, ".")
	}
	if noFit.Limit == profiles.LimitUserBudget && strings.HasPrefix(noFit.Change, "a budget") {
		return fmt.Sprintf("needs --memory %dGB or more", noFit.NeedBytes/gigabyte+1)
	}
	said := fmt.Sprintf("needs %s of memory (here: %s)", units.GiB(noFit.NeedBytes), units.GiB(noFit.BudgetBytes))
	if !strings.Contains(noFit.Change, "smaller model") {
		said += ", or " + noFit.Change
	}
	return said
}
