// Package compare sets the answers of two runs against each other, task by task: the same question, two servers or two
// profiles. Pairs say more than two averages: what both get right, or neither, says nothing about the difference.
package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"slipway/checks/record"
)

// Result of a comparison. A and B are the runs in the order given.
type Result struct {
	A, B     record.Setup
	Tasks    int
	Same     int     // answers that are the same text
	ABetter  int     // tasks in which A has more right than B
	BBetter  int     // and the other way round
	P        float64 // two-sided exact sign test of the tasks that differ
	Shift    float64 // mean of B's share less A's, task by task
	Low      float64 // and its 95 % interval
	High     float64
	Groups   []Group
	ScoreA   record.Score
	ScoreB   record.Score
	Decision Decision
}

// Decision is what the pairs say.
type Decision string

const (
	Worse     Decision = "worse"  // B is worse than A
	Better    Decision = "better" // B is better than A
	Undecided Decision = "not told apart"
	Identical Decision = "the same answers"
	level              = 0.05
	normal95           = 1.959964
)

// Group is one kind of task.
type Group struct {
	Name string
	A, B record.Score
}

// UnlikeError is two runs that did not ask the same.
type UnlikeError struct{ Why string }

func (e *UnlikeError) Error() string {
	return "the two runs did not ask the same, so they cannot be compared: " + e.Why
}

// Pair compares two runs.
func Pair(setupA record.Setup, a []record.Answer, setupB record.Setup, b []record.Answer) (Result, error) {
	r := Result{A: setupA, B: setupB}
	if err := alike(setupA, setupB); err != nil {
		return r, err
	}
	byTask := map[string]record.Answer{}
	for _, answer := range b {
		byTask[answer.Task] = answer
	}
	if len(a) != len(b) || len(a) == 0 {
		return r, &UnlikeError{fmt.Sprintf("%d answers and %d", len(a), len(b))}
	}
	var shifts []float64
	var hitsA, hitsB, of int
	for _, one := range a {
		other, ok := byTask[one.Task]
		if !ok || one.Request != other.Request || one.Of != other.Of || one.Of == 0 {
			return r, &UnlikeError{fmt.Sprintf("task %s has another text in the other run; texts are made by the "+
				"server's count of tokens", one.Task)}
		}
		r.Tasks++
		if one.Text == other.Text {
			r.Same++
		}
		if one.Hits > other.Hits {
			r.ABetter++
		} else if other.Hits > one.Hits {
			r.BBetter++
		}
		shifts = append(shifts, float64(other.Hits-one.Hits)/float64(one.Of))
		hitsA, hitsB, of = hitsA+one.Hits, hitsB+other.Hits, of+one.Of
	}
	r.ScoreA, r.ScoreB = record.ScoreOf("A", hitsA, of), record.ScoreOf("B", hitsB, of)
	scoresA, scoresB := record.ScoresByGroup(a), record.ScoresByGroup(b)
	for _, s := range scoresA {
		i := slices.IndexFunc(scoresB, func(o record.Score) bool { return o.Name == s.Name })
		if i >= 0 {
			r.Groups = append(r.Groups, Group{s.Name, s, scoresB[i]})
		}
	}
	r.P = signTest(r.ABetter, r.BBetter)
	r.Shift, r.Low, r.High = meanInterval(shifts)
	switch {
	case r.Same == r.Tasks:
		r.Decision = Identical
	case r.P < level && r.ABetter > r.BBetter:
		r.Decision = Worse
	case r.P < level:
		r.Decision = Better
	default:
		r.Decision = Undecided
	}
	return r, nil
}

// alike compares what decides the questions and their scoring. Server, model, profile and side may differ.
func alike(a, b record.Setup) error {
	var differ []string
	say := func(name string, x, y any) {
		if fmt.Sprint(x) != fmt.Sprint(y) {
			differ = append(differ, fmt.Sprintf("%s %v and %v", name, x, y))
		}
	}
	say("check", a.Check, b.Check)
	say("seed", a.Seed, b.Seed)
	say("samples", a.Samples, b.Samples)
	say("lengths", a.Lengths, b.Lengths)
	say("longest answer", a.MaxTokens, b.MaxTokens)
	say("thinking", a.Thinking, b.Thinking)
	for _, name := range []string{"codes", "grid", "tasks", "shots"} {
		say(name, a.Options[name], b.Options[name])
	}
	if a.Template != b.Template || a.Scoring != b.Scoring {
		differ = append(differ, "another wording or scoring")
	}
	if len(differ) > 0 {
		return &UnlikeError{strings.Join(differ, "; ")}
	}
	return nil
}

// signTest is the probability of a split at least as uneven when both sides are as likely: two-sided, exact.
func signTest(a, b int) float64 {
	n, k := a+b, min(a, b)
	if n == 0 {
		return 1
	}
	sum := 0.0
	for i := 0; i <= k; i++ {
		all, _ := math.Lgamma(float64(n + 1))
		some, _ := math.Lgamma(float64(i + 1))
		rest, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(all - some - rest - float64(n)*math.Ln2)
	}
	return min(1, 2*sum)
}

// meanInterval is the mean of paired differences with its 95 % interval by the normal approximation.
func meanInterval(values []float64) (mean, low, high float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	if n < 2 {
		return mean, -1, 1
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	half := normal95 * math.Sqrt(squares/(n-1)/n)
	return mean, max(-1, mean-half), min(1, mean+half)
}
