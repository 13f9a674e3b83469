// Package tools checks how a server and its model call functions: over several turns, several at once, with arguments
// of every JSON type, as a stream and in one piece.
package tools

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"slipway/checks/client"
	"slipway/checks/record"
)

// Options of a run.
type Options struct {
	Samples   int
	Seed      uint64
	MaxTokens int
	Thinking  bool
}

const (
	Template = `no system message; tools get_weather(city), read_file(path), save_record(text, count, ratio, open, missing, list, place); user: "What is the weather in {city}?", "Read the file {path}.", "What is the weather in {city} and in {city}? Ask for both at once.", "Call save_record with …", "Hello"`
	Scoring  = "a task counts when every call is one that was asked for, with arguments equal to those in the " +
		"question in value and JSON type, in an object that parses, under an id of its own, with finish_reason " +
		"tool_calls; and when an answer that rests on a result has its number"
)

// scenes in the order in which they are played.
var scenes = []struct {
	name string
	play func(*stage) error
}{
	{"one call", oneCall},
	{"the result is used", resultUsed},
	{"several turns", severalTurns},
	{"two calls at once", twoCalls},
	{"every JSON type", everyType},
	{"in one piece", onePiece},
	{"required", required},
	{"forbidden", forbidden},
	{"not needed", notNeeded},
}

// Tasks are all scenes, each as often as there are samples.
func Tasks(s *client.Server, o Options) []record.Task {
	var tasks []record.Task
	for i, scene := range scenes {
		for sample := range o.Samples {
			tasks = append(tasks, record.Task{ID: fmt.Sprintf("%s, %d", scene.name, sample+1),
				Do: func(ctx context.Context) (record.Answer, error) {
					st := &stage{ctx: ctx, s: s, o: o,
						random: rand.New(rand.NewPCG(o.Seed, uint64(i)<<32|uint64(sample)))}
					err := scene.play(st)
					a := record.Answer{}
					if st.last != nil {
						a = record.From(st.last)
					}
					a.Group, a.Of, a.Why, a.Status = scene.name, 1, st.why, record.Fail
					if st.why == "" {
						a.Hits, a.Status = 1, record.Pass
					}
					return a, err
				}})
		}
	}
	return tasks
}

// Findings put the samples of each scene together: a scene passes when every sample does; the first
// reason is reported.
func Findings(answers []record.Answer) []record.Finding {
	findings := []record.Finding{}
	for _, scene := range scenes {
		f := record.Finding{ID: scene.name, Status: record.Pass}
		for _, a := range answers {
			if a.Group == scene.name && a.Status != record.Pass && f.Status == record.Pass {
				f.Status, f.Why = a.Status, a.Why
			}
		}
		findings = append(findings, f)
	}
	return findings
}

// stage is one scene being played. why is the first thing that went wrong.
type stage struct {
	ctx    context.Context
	s      *client.Server
	o      Options
	random *rand.Rand
	last   *client.Reply
	why    string
}

func (st *stage) bad(format string, args ...any) {
	if st.why == "" {
		st.why = client.Printable(fmt.Sprintf(format, args...))
	}
}

// ask puts a conversation and judges the form of the reply.
func (st *stage) ask(messages []client.Message, choice string, plain bool) (*client.Reply, error) {
	reply, err := st.s.Chat(st.ctx, client.Request{Messages: messages, Tools: all, Choice: choice, Plain: plain,
		MaxTokens: st.o.MaxTokens, Thinking: st.o.Thinking})
	if err != nil {
		return nil, err
	}
	st.last = reply
	st.form(reply)
	return reply, nil
}

// form judges what a reply must be whatever the model says.
func (st *stage) form(reply *client.Reply) {
	var ids []string
	for _, call := range reply.Calls {
		if _, err := arguments(call); err != nil {
			st.bad("the server's fault: the arguments of %s are no JSON object: %s", call.Function.Name,
				call.Function.Arguments)
		}
		if call.ID == "" || slices.Contains(ids, call.ID) {
			st.bad("the server's fault: a call has no id of its own, but %q", call.ID)
		}
		ids = append(ids, call.ID)
		if !slices.ContainsFunc(all, func(t client.Tool) bool { return t.Function.Name == call.Function.Name }) {
			st.bad("a call of %q, which is no tool", call.Function.Name)
		}
	}
	if len(reply.Calls) > 0 && reply.Finish != "tool_calls" && reply.Finish != "length" {
		st.bad("the server's fault: a reply with calls ends with finish_reason %q", reply.Finish)
	}
}

// expect judges the calls of a reply, in any order.
func (st *stage) expect(reply *client.Reply, wanted ...call) {
	if len(reply.Calls) != len(wanted) {
		st.bad("%d calls where %d were asked for; it says %q", len(reply.Calls), len(wanted), short(reply.Answer()))
		return
	}
	for _, want := range wanted {
		closest := ""
		if !slices.ContainsFunc(reply.Calls, func(c client.ToolCall) bool {
			difference := want.differs(c)
			if closest == "" {
				closest = difference
			}
			return difference == ""
		}) {
			st.bad("%s", closest)
		}
	}
}

func short(text string) string {
	text = client.Printable(text)
	if len(text) > 80 {
		text = text[:80] + "…"
	}
	return text
}
