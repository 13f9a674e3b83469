// Package needle hides codes in a text and asks for them: how much a model finds again, by the length of the text and
// by how deep the code lies in it, both in tokens.
package needle

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"slipway/checks/client"
	"slipway/checks/record"
)

// Options of a run. With Grid each request has one code at each of so many depths; without, a document has Codes codes,
// one in each equal part of it.
type Options struct {
	Lengths   []int // tokens of the whole prompt
	Samples   int   // documents of each length; with Grid, of each length and depth
	Codes     int
	Grid      int // depths, 0 for none
	Seed      uint64
	MaxTokens int
	Thinking  bool
}

const (
	system   = "You are a helpful assistant."
	Template = `system: "` + system +
		`"; user: "Document:\n{document}\n\n{question}"; a code: "Note: the code of the {name} is {code}."; the question for one: "What is the access code for the {name}?"; for several: "` + AskAll + `"`
	Scoring = "a code counts as found when the answer has it as a number of its own, and, where the answer has its " +
		"name, when the first number of six digits after the name is it"
)

// questionTokens is about what the question and the system message take.
const questionTokens = 30

// Tasks makes the requests. The same options and ruler make the same.
func Tasks(s *client.Server, ruler *Ruler, o Options) []record.Task {
	var tasks []record.Task
	for _, length := range o.Lengths {
		for sample := range o.Samples {
			if o.Grid == 0 {
				tasks = append(tasks, several(s, ruler, o, length, sample))
				continue
			}
			for step := range o.Grid {
				depth := 0.0
				if o.Grid > 1 {
					depth = float64(step) / float64(o.Grid-1)
				}
				tasks = append(tasks, one(s, ruler, o, length, sample, step, depth))
			}
		}
	}
	return tasks
}

// source is the randomness of one task: the same whatever the other tasks are.
func source(seed uint64, length, sample, step int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(length)<<32|uint64(sample)<<12|uint64(step)))
}

func several(s *client.Server, ruler *Ruler, o Options, length, sample int) record.Task {
	r := source(o.Seed, length, sample, 0)
	var names, codes, lines []string
	var depths []float64
	for i := range o.Codes {
		names, codes = append(names, Name(r, names)), append(codes, Code(r))
		lines = append(lines, Fact(names[i], codes[i]))
		depths = append(depths, (float64(i)+r.Float64())/float64(o.Codes))
	}
	return task(s, ruler, o, fmt.Sprintf("%d-%d", length, sample), r, length, names, codes, lines, depths, AskAll)
}

func one(s *client.Server, ruler *Ruler, o Options, length, sample, step int, depth float64) record.Task {
	r := source(o.Seed, length, sample, step+1)
	name, code := Name(r, nil), Code(r)
	return task(s, ruler, o, fmt.Sprintf("%d-%d-%d", length, sample, step), r, length, []string{name}, []string{code},
		[]string{Fact(name, code)}, []float64{depth}, Ask(name))
}

func task(s *client.Server, ruler *Ruler, o Options, id string, r *rand.Rand, length int, names, codes, lines []string,
	depths []float64, question string) record.Task {
	document, placed := ruler.Build(r, length-ruler.head-questionTokens, lines, depths)
	request := client.Request{MaxTokens: o.MaxTokens, Thinking: o.Thinking, Messages: []client.Message{
		client.Say("system", system), client.Say("user", "Document:\n"+document+"\n\n"+question)}}
	return record.Asks(s, id, request, func(reply *client.Reply, a *record.Answer) {
		a.Group, a.Of, a.Expected = fmt.Sprintf("%d tokens", length), len(codes), codes
		for i := range codes {
			hit := Found(reply.Answer(), names[i], codes[i])
			a.Parts = append(a.Parts, record.Part{Length: length, Depth: placed[i], Want: codes[i], Hit: hit})
			if hit {
				a.Hits++
			}
		}
	})
}

var sixDigits = regexp.MustCompile(`(?:^|[^0-9])([0-9]{6})(?:[^0-9]|$)`)

// Found is the scoring rule.
func Found(answer, name, code string) bool {
	numbers := func(text string) []string {
		var all []string
		for {
			m := sixDigits.FindStringSubmatchIndex(text)
			if m == nil {
				return all
			}
			all = append(all, text[m[2]:m[3]])
			text = text[m[3]:]
		}
	}
	if _, behind, named := strings.Cut(strings.ToLower(answer), strings.ToLower(name)); named {
		after := numbers(behind)
		return len(after) > 0 && after[0] == code
	}
	return slices.Contains(numbers(answer), code)
}

// WholeDocuments is the name of that score.
const WholeDocuments = "texts with every code found"

// Documents is the score of documents in which every code was found.
func Documents(answers []record.Answer) record.Score {
	whole := 0
	for _, a := range answers {
		if a.Hits == a.Of {
			whole++
		}
	}
	return record.ScoreOf(WholeDocuments, whole, len(answers))
}
