package suite

import (
	"slipway/checks/client"
	"slipway/checks/needle"
	"slipway/checks/record"
	"slipway/fault"
	"slipway/units"
)

// countMargin is the part of a length, one in so many, by which our count of tokens may be short of the server's.
const countMargin = 50

// unknownWindowTokens is the longest usual length that a server is given which does not say its window.
const unknownWindowTokens = 8192

// lengths are those that were given, if they fit the window with an answer behind; else the defaults that fit.
func lengths(server *client.Server, in Input, defaults ...int) ([]int, error) {
	window, answer := server.Details.WindowTokens, in.MaxTokens
	if len(in.Lengths) > 0 {
		for _, n := range in.Lengths {
			if window > 0 && n+n/countMargin+answer > window {
				return nil, wrong("--lengths has %d, which with an answer of %d tokens is beyond the server's "+
					"window of %s", n,
					answer, units.Count(window))
			}
		}
		return in.Lengths, nil
	}
	var fit []int
	for _, n := range defaults {
		if window == 0 && n <= unknownWindowTokens || n+n/countMargin+answer <= window {
			fit = append(fit, n)
		}
	}
	if len(fit) == 0 {
		return nil, &InputError{"The server's window of " + units.Count(window) +
			" tokens is too small for the usual lengths.", fault.GiveLengths}
	}
	return fit, nil
}

func belowLeast(report record.Report, least float64) bool {
	hits, of := 0, 0
	for _, score := range report.Scores {
		if score.Name != needle.WholeDocuments {
			hits, of = hits+score.Hits, of+score.Of
		}
	}
	return least > 0 && float64(hits) < least*float64(of)
}
