// Package cache checks that a server's prefix cache changes how long an answer takes and never what it says. Each scene
// sends a document to the server, changes or extends it, and asks for a value: an answer with the value that was there
// before is the one thing that must never be.
package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"slipway/checks/client"
	"slipway/checks/needle"
	"slipway/checks/record"
)

// Options of a run.
type Options struct {
	Tokens    int // of the documents
	Samples   int // of each scene
	Seed      uint64
	MaxTokens int
	Nonce     func() string // a new random word; each document begins with one, so that every scene begins cold
}

const (
	system   = "You are a helpful assistant."
	Template = `system: "` + system +
		`"; user: "Document:\n{random word}\n{filler with codes}\n\nWhat is the access code for the {name}?"; the tool scene: get_weather with a result {"temperature": N, "sky": "sunny"}`
	Scoring = "pass: the answer has the value that is in the text now, and what the server says it took from " +
		"its cache ends where the text changed; fail: the value that stood there before, or a wrong answer where " +
		"the same question right after a new random word is answered rightly; unknown: the model does not find the " +
		"value without the cache either"
)

// scenes in the order in which they are played.
var scenes = []struct {
	name string
	play func(*stage) error
}{
	{"cold", cold},
	{"the same again", again},
	{"continuation", continuation},
	{"new data", newData},
	{"correction", correction},
	{"early change", earlyChange},
	{"late change", lateChange},
	{"two alike in turn", twoAlike},
	{"two alike at once", twoAtOnce},
	{"cancelled while reading", cancelledReading},
	{"cancelled while answering", cancelledAnswering},
	{"tool loop", toolLoop},
}

// Tasks are all scenes, each as often as there are samples.
func Tasks(s *client.Server, ruler *needle.Ruler, o Options) []record.Task {
	var tasks []record.Task
	for i, scene := range scenes {
		for sample := range o.Samples {
			tasks = append(tasks, record.Task{ID: fmt.Sprintf("%s, %d", scene.name, sample+1),
				Do: func(ctx context.Context) (record.Answer, error) {
					st := &stage{ctx: ctx, s: s, ruler: ruler, o: o,
						random: rand.New(rand.NewPCG(o.Seed, uint64(i)<<32|uint64(sample)))}
					st.status = record.Pass
					err := scene.play(st)
					return st.answer(scene.name), err
				}})
		}
	}
	return tasks
}

// Findings put the samples of each scene together: the worst counts, and its words are reported.
func Findings(answers []record.Answer) []record.Finding {
	rank := []string{record.Fail, record.Unknown, record.Pass}
	findings := []record.Finding{}
	for _, scene := range scenes {
		worst := record.Finding{}
		for _, a := range answers {
			if a.Group == scene.name &&
				(worst.Status == "" || slices.Index(rank, a.Status) < slices.Index(rank, worst.Status)) {
				worst = record.Finding{ID: scene.name, Status: a.Status, Why: a.Why}
			}
		}
		findings = append(findings, worst)
	}
	return findings
}

// stage is one scene being played.
type stage struct {
	ctx    context.Context
	s      *client.Server
	ruler  *needle.Ruler
	o      Options
	random *rand.Rand

	last   *client.Reply
	doubts []client.Doubt
	hits   int
	of     int
	status string
	why    string
	notes  string // of a scene that passes
}

func (st *stage) answer(group string) record.Answer {
	var a record.Answer
	if st.last != nil {
		a = record.From(st.last)
	}
	a.Group, a.Hits, a.Of, a.Status, a.Why = group, st.hits, st.of, st.status, st.why
	a.Doubts = append([]client.Doubt{}, st.doubts...)
	if a.Why == "" {
		a.Why = st.notes
	}
	return a
}

// bad makes the scene fail, or unknown where it has not failed. The first reason is kept.
func (st *stage) bad(status, format string, args ...any) {
	if st.status == record.Pass || st.status == record.Unknown && status == record.Fail {
		st.status, st.why = status, fmt.Sprintf(format, args...)
	}
}

// ask puts a conversation.
func (st *stage) ask(messages []client.Message, tools []client.Tool) (*client.Reply, error) {
	reply, err := st.s.Chat(st.ctx, st.request(messages, tools))
	if err != nil {
		return nil, err
	}
	st.last = reply
	st.doubts = append(st.doubts, reply.Doubts()...)
	return reply, nil
}

func (st *stage) request(messages []client.Message, tools []client.Tool) client.Request {
	return client.Request{Messages: messages, Tools: tools, MaxTokens: st.o.MaxTokens}
}

// cachedTokens is what the server says it had; -1 where it does not say, or contradicts itself.
func cachedTokens(reply *client.Reply) int {
	if _, why := reply.CountsPrompt(); why != "" || reply.Usage.Cached == nil {
		return -1
	}
	return *reply.Usage.Cached
}

// headTokens is the most that comes in front of a document's random word: template, system message, "Document:".
const headTokens = 64

// atMost judges how much the server says it took from its cache: text that changed cannot have been cached.
func (st *stage) atMost(reply *client.Reply, tokens int, where string) {
	if n := cachedTokens(reply); n > tokens {
		st.bad(record.Fail, "the server says that %d tokens were cached, but %s after about %d", n, where, tokens)
	}
}

// cachedWords says what was cached, for the words of a pass.
func cachedWords(reply *client.Reply) string {
	n := cachedTokens(reply)
	if n < 0 {
		return "the server does not say how much was cached"
	}
	return fmt.Sprintf("%d of %d tokens cached", n, reply.Usage.Prompt)
}
