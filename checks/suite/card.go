package suite

import (
	"cmp"
	"context"

	"slipway/checks/client"
	"slipway/checks/filler"
	"slipway/checks/measure"
	"slipway/checks/record"
	"slipway/checks/ruler"
	"slipway/fault"
)

// CardAnswer is the answer of All.
type CardAnswer struct {
	Quick   bool            `json:"quick"`
	Server  client.Identity `json:"server"`
	URL     string          `json:"url"`
	Speed   measure.Run     `json:"speed"`
	Reports []record.Report `json:"reports"`
}

// Class is CheckFailed where anything is wrong.
func (a CardAnswer) Class() fault.Class {
	class := fault.OK
	if len(a.Speed.Doubts) > 0 {
		class = fault.CheckFailed
	}
	for _, r := range a.Reports {
		if r.Failed() {
			class = fault.CheckFailed
		}
	}
	return class
}

// OurText is the prompt of a measurement without a file.
func OurText() string {
	return filler.Text(60) + "\n\nRepeat the text above from its beginning, word for word."
}

// The samples and lengths of a report card, whole and quick.
var (
	cardTasks         = ruler.Names
	quickTasks        = []string{"niah_multikey_2", "vt", "fwe"}
	quickNeedleTokens = []int{600, 1400}
	quickRulerTokens  = []int{1400}
)

// CheckCard refuses values that no report card can have.
func CheckCard(in Input) error {
	in.Samples = cmp.Or(in.Samples, 1)
	return in.Check()
}

// All measures and runs every check of one server. in.Samples 0: each check's own.
func (r *Runner) All(ctx context.Context, in Input) (CardAnswer, error) {
	if err := CheckCard(in); err != nil {
		return CardAnswer{}, err
	}
	answer := CardAnswer{Quick: in.Quick, Server: r.Server.Details, URL: r.Server.Base, Reports: []record.Report{}}
	speed, err := measure.Do(ctx, r.Server, measure.Options{Text: OurText(), Fresh: true, Nonce: randomWord,
		MaxTokens: 64,
		Repeat:    1})
	if err != nil {
		return answer, err
	}
	answer.Speed = speed.Runs[0]
	answer.Speed.Answer, answer.Speed.Thinking = "", ""
	part := func(check string, whole, quick int, lengths []int) Input {
		own := in
		own.Name, own.Samples, own.Lengths = cmp.Or(in.Name, "all")+"-"+check, cmp.Or(in.Samples, whole), nil
		if in.Quick {
			own.Samples, own.Lengths = cmp.Or(in.Samples, quick), lengths
		}
		return own
	}
	tasks, textTokens := cardTasks(), 3000
	if in.Quick {
		tasks, textTokens = quickTasks, 700
	}
	short := part("cache", 3, 1, nil)
	short.Thinking = false
	for _, check := range []func() (CheckAnswer, error){
		func() (CheckAnswer, error) {
			return r.Needle(ctx, NeedleInput{Input: part("needle", 20, 4, r.fitting(in, quickNeedleTokens)), Codes: 4})
		},
		func() (CheckAnswer, error) {
			return r.Ruler(ctx, RulerInput{Input: part("ruler", 25, 2, r.fitting(in, quickRulerTokens)), Tasks: tasks,
				Shots: 1})
		},
		func() (CheckAnswer, error) { return r.Cache(ctx, CacheInput{Input: short, Tokens: textTokens}) },
		func() (CheckAnswer, error) { return r.Tools(ctx, part("tools", 10, 2, nil)) },
	} {
		report, err := check()
		if err != nil {
			return answer, err
		}
		answer.Reports = append(answer.Reports, report.Report)
	}
	return answer, nil
}

// fitting are the quick lengths that fit the window; all of them where none does, so that the check says so.
func (r *Runner) fitting(in Input, quick []int) []int {
	if fit, err := lengths(r.Server, Input{MaxTokens: in.MaxTokens}, quick...); err == nil {
		return fit
	}
	return quick
}
