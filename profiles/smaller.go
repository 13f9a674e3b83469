package profiles

import (
	"cmp"
	"slices"
)

// Smaller is the gentlest change of a choice that keeps within in.UserBudgetBytes: in.Profile with a shorter window,
// else another profile in the order of profiles, else the largest of the smaller models, as soon as that leaves a
// comfortable window; where nothing does, what leaves the longest. Each is sized as a plan that asks for it by name
// would be. Experimental profiles and embedded models are never offered. False means that nothing fits.
func Smaller(in Input, models []Candidate, profiles []Profile) (Result, bool) {
	tried := slices.Concat([]Profile{in.Profile}, slices.DeleteFunc(slices.Clone(profiles), func(p Profile) bool {
		return p.ID == in.Profile.ID || p.Experimental
	}))
	lighter := slices.DeleteFunc(slices.Clone(models), func(m Candidate) bool {
		return m.Embedded || m.ID == in.Model.ID || m.Geometry.WeightsBytes >= in.Model.Geometry.WeightsBytes
	})
	slices.SortFunc(lighter, func(a, b Candidate) int {
		return cmp.Compare(b.Geometry.WeightsBytes, a.Geometry.WeightsBytes)
	})
	var longest Result
	for _, model := range slices.Concat([]Candidate{in.Model}, lighter) {
		for _, profile := range tried {
			in.Model, in.Profile = model, profile
			r, err := SizeUpTo(in)
			switch {
			case err != nil: // it does not fit at all, or this server cannot do it
			case r.WindowTokens >= min(ComfortableTokens, model.Geometry.MaxPositions):
				return r, true
			case r.WindowTokens > longest.WindowTokens:
				longest = r
			}
		}
	}
	return longest, longest.WindowTokens > 0
}
