// Package ruler puts tasks of NVIDIA's RULER over a chat API: its templates, its scoring and generators of our own.
// What differs from the publication is in Differences, and a score says so.
package ruler

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"slipway/checks/client"
	"slipway/checks/count"
	"slipway/checks/record"
)

// Differences from the publication, for the report.
var Differences = []string{
	"The question is a user's message of a chat, and the answer begins freely: RULER puts the first words of the " +
		"answer into the prompt. So the limit of the answer is higher than RULER's (30 to 128 tokens).",
	"niah_multikey_1 hides its needles in the product's own filler; RULER has essays there.",
	"Names and words come from lists of our own, made of syllables; RULER has wonderwords.",
	"RULER's 13 tasks are 6 here: three of needles with several keys, variable tracking, common words, frequent words.",
}

// Options of a run.
type Options struct {
	Tasks     []string
	Lengths   []int // tokens of prompt and answer together, as RULER counts them
	Samples   int
	Seed      uint64
	Shots     int // 1 as RULER has it: a solved example in front (variable tracking and common words); 0: none
	MaxTokens int
	Thinking  bool
}

// made is one generated task: its text and the strings that the answer must have.
type made struct {
	text string
	want []string
}

// generator makes a task of so many units: lines, words, whatever grows it. It must work from least on.
type generator struct {
	name  string
	least int
	step  int // units that are tried to learn the tokens of one
	make  func(r *rand.Rand, units int, shots int, tokens int) made
}

var generators = []generator{
	{"niah_multikey_1", 8, 40, multikey1},
	{"niah_multikey_2", 8, 40, multikey2},
	{"niah_multikey_3", 4, 20, multikey3},
	{"vt", 5, 20, variableTracking},
	{"cwe", 20, 60, commonWords},
	{"fwe", 60, 400, frequentWords},
}

// Names are the tasks that there are.
func Names() []string {
	var names []string
	for _, g := range generators {
		names = append(names, g.name)
	}
	return names
}

// Template gives the wording of the chosen tasks.
func Template(tasks []string) string {
	texts := map[string]string{"niah_multikey_1": niahOne, "niah_multikey_2": niahOne, "niah_multikey_3": niahOne,
		"vt": vtTemplate, "cwe": cweTemplate, "fwe": fweTemplate}
	var all []string
	for _, t := range tasks {
		all = append(all, t+": "+texts[t])
	}
	return strings.Join(all, "\n\n")
}

// source is the randomness of one task.
func source(o Options, name string, length, sample int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, name, " ", length, " ", sample)
	return rand.New(rand.NewPCG(o.Seed, h.Sum64()))
}

// Tasks makes the requests: as long as fits each length, by counting two texts of each kind.
func Tasks(ctx context.Context, s *client.Server, c *count.Counter, o Options) ([]record.Task, error) {
	var tasks []record.Task
	for _, g := range generators {
		if !contains(o.Tasks, g.name) {
			continue
		}
		for _, length := range o.Lengths {
			units, err := g.fit(ctx, c, o, length)
			if err != nil {
				return nil, err
			}
			for sample := range o.Samples {
				tasks = append(tasks, g.task(s, o, length, sample, units))
			}
		}
	}
	return tasks, nil
}

// verifiedTokens is the length up to which a text is counted whole before it is used.
const verifiedTokens = 8192

// fit finds how many units fill a length, from the tokens of two texts: short ones first, then, where the length is far
// beyond them, an eighth and a quarter of it. Up to verifiedTokens the result is counted too.
func (g generator) fit(ctx context.Context, c *count.Counter, o Options, length int) (int, error) {
	room := float64(length-o.MaxTokens-c.Head()) * 0.985
	tokensOf := func(units int) (float64, error) {
		n, err := c.Count(ctx, g.make(source(o, g.name, length, 0), units, o.Shots, length).text)
		return float64(n), err
	}
	a, b, units, each := g.least+g.step, g.least+2*g.step, 0, 0.0
	for pass := 0; pass < 2; pass++ {
		short, err := tokensOf(a)
		if err != nil {
			return 0, err
		}
		long, err := tokensOf(b)
		if err != nil {
			return 0, err
		}
		if each = (long - short) / float64(b-a); each <= 0 {
			return 0, &client.Fault{
				Kind: client.BadCounting, Why: fmt.Sprintf("the server counts a longer text (%.0f tokens) not "+
					"longer than a shorter one (%.0f)", long, short)}
		}
		units = b + int((room-long)/each)
		if units/8 <= b {
			break
		}
		a, b = units/8, units/4
	}
	if units >= g.least && length <= verifiedTokens {
		got, err := tokensOf(units)
		if err != nil {
			return 0, err
		}
		if got > room {
			units -= 1 + int((got-room)/each)
		}
	}
	if units < g.least {
		return 0, &TooShortError{g.name, length}
	}
	return units, nil
}

// TooShortError is a length that a task with its answer does not fit into.
type TooShortError struct {
	Task   string
	Length int
}

func (e *TooShortError) Error() string {
	return fmt.Sprintf("%s with its answer does not fit into %d tokens", e.Task, e.Length)
}

func (g generator) task(s *client.Server, o Options, length, sample, units int) record.Task {
	m := g.make(source(o, g.name, length, sample), units, o.Shots, length)
	request := client.Request{Messages: []client.Message{client.Say("user", m.text)}, MaxTokens: o.MaxTokens,
		Thinking: o.Thinking}
	return record.Asks(s, fmt.Sprintf("%s-%d-%d", g.name, length, sample), request,
		func(reply *client.Reply, a *record.Answer) {
			a.Group, a.Of, a.Expected = fmt.Sprintf("%s, %d tokens", g.name, length), len(m.want), m.want
			a.Hits = Match(reply.Text, m.want)
		})
}

// Match is the scoring rule: how many of the wanted strings are in the answer.
func Match(answer string, want []string) int {
	hits := 0
	for _, w := range want {
		if strings.Contains(strings.ToLower(answer), strings.ToLower(w)) {
			hits++
		}
	}
	return hits
}

func contains(list []string, name string) bool {
	for _, l := range list {
		if l == name {
			return true
		}
	}
	return false
}

// filled puts values into a template's braces.
func filled(template string, pairs ...string) string {
	for i := range pairs {
		if i%2 == 0 {
			pairs[i] = "{" + pairs[i] + "}"
		}
	}
	return strings.NewReplacer(pairs...).Replace(template)
}
