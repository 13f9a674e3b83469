package record

import (
	"math"
	"slices"
)

// Report is what a check came to.
type Report struct {
	Setup    Setup     `json:"setup"`
	Scores   []Score   `json:"scores"`
	Findings []Finding `json:"findings"`
	Notes    []string  `json:"notes"`
	Doubts   []string  `json:"doubts"`  // of the server's own counts, each once
	Text     string    `json:"text"`    // a table for people, or empty
	Answers  string    `json:"answers"` // the file of the answers
	Picture  string    `json:"picture"` // the file of the heat map, or empty
}

// Score is a share with its interval: Wilson's, 95 %.
type Score struct {
	Name  string  `json:"name"`
	Hits  int     `json:"hits"`
	Of    int     `json:"of"`
	Share float64 `json:"share"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Finding is one thing that was judged.
type Finding struct {
	ID     string `json:"id"`
	Status string `json:"status"` // pass, fail, unknown
	Why    string `json:"why"`
}

const (
	Pass    = "pass"
	Fail    = "fail"
	Unknown = "unknown"
)

// Failed reports whether something was found wrong, the server's counts included.
func (r Report) Failed() bool {
	return len(r.Doubts) > 0 || slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Status == Fail })
}

// ScoreOf makes a score of counts.
func ScoreOf(name string, hits, of int) Score {
	low, high := Wilson(hits, of)
	s := Score{Name: name, Hits: hits, Of: of, Low: low, High: high}
	if of > 0 {
		s.Share = float64(hits) / float64(of)
	}
	return s
}

// Wilson is the 95 % score interval of a share (Wilson 1927): unlike the usual one it is not of no width at 0 and at 1.
func Wilson(hits, of int) (low, high float64) {
	if of == 0 {
		return 0, 1
	}
	const z = 1.959964
	n, p := float64(of), float64(hits)/float64(of)
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(0, middle-half), min(1, middle+half)
}

// ScoresByGroup adds up the answers of each group, in the order in which groups appear.
func ScoresByGroup(answers []Answer) []Score {
	var names []string
	hits, of := map[string]int{}, map[string]int{}
	for _, a := range answers {
		if !slices.Contains(names, a.Group) {
			names = append(names, a.Group)
		}
		hits[a.Group] += a.Hits
		of[a.Group] += a.Of
	}
	scores := []Score{}
	for _, name := range names {
		scores = append(scores, ScoreOf(name, hits[name], of[name]))
	}
	return scores
}

// FindingsOf are the judged answers, worst status of each group first met.
func FindingsOf(answers []Answer) []Finding {
	findings := []Finding{}
	for _, a := range answers {
		if a.Status != "" {
			findings = append(findings, Finding{a.Task, a.Status, a.Why})
		}
	}
	return findings
}

// DoubtsOf are the contradictions in the server's counts, each kind once.
func DoubtsOf(answers []Answer) []string {
	doubts, seen := []string{}, map[string]bool{}
	for _, a := range answers {
		for _, d := range a.Doubts {
			if !seen[d.About] {
				seen[d.About] = true
				doubts = append(doubts, d.Why+" (task "+a.Task+")")
			}
		}
	}
	return doubts
}
