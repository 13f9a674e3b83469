package suite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"slipway/checks/measure"
	"slipway/fault"
)

// MeasureInput is the input of Measure.
type MeasureInput struct {
	Name string `json:"name"` // of the text
	Text string `json:"text"` // empty: OurText
	// begin with a random word, so that nothing can come from a cache
	Fresh      bool                `json:"fresh"`
	MaxTokens  int                 `json:"max_tokens"` // of the answer, 1 to 100000
	Repeat     int                 `json:"repeat"`     // 1 to 100000
	Thinking   bool                `json:"thinking"`
	ShowAnswer bool                `json:"show_answer"`
	Stage      func(measure.Stage) `json:"-"` // called before each wait that may be long; may be nil
}

// Check refuses values that no measurement can have. Error: *InputError, which names the flag.
func (in MeasureInput) Check() error {
	if err := between1And("max-tokens", in.MaxTokens, mostOfAnything); err != nil {
		return err
	}
	return between1And("repeat", in.Repeat, mostOfAnything)
}

// MeasureAnswer is the answer of Measure.
type MeasureAnswer struct {
	Text   MeasuredText   `json:"text"`
	Result measure.Result `json:"result"`
}

// MeasuredText names what was sent. It is not repeated.
type MeasuredText struct {
	Name   string `json:"name"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Class is CheckFailed where the numbers contradict each other.
func (a MeasureAnswer) Class() fault.Class {
	for _, r := range a.Result.Runs {
		if len(r.Doubts) > 0 {
			return fault.CheckFailed
		}
	}
	return fault.OK
}

// Measure times one request, as often as asked. An error comes with the answer so far.
func (r *Runner) Measure(ctx context.Context, in MeasureInput) (MeasureAnswer, error) {
	if err := in.Check(); err != nil {
		return MeasureAnswer{}, err
	}
	if in.Text == "" {
		in.Name, in.Text = "built-in text", OurText()
	}
	sum := sha256.Sum256([]byte(in.Text))
	answer := MeasureAnswer{Text: MeasuredText{in.Name, len(in.Text), hex.EncodeToString(sum[:])}}
	var err error
	answer.Result, err = measure.Do(ctx, r.Server, measure.Options{Text: in.Text, Fresh: in.Fresh, Nonce: randomWord,
		MaxTokens: in.MaxTokens,
		Repeat:    in.Repeat, Thinking: in.Thinking, Stage: in.Stage})
	if !in.ShowAnswer {
		for i := range answer.Result.Runs {
			answer.Result.Runs[i].Answer, answer.Result.Runs[i].Thinking = "", ""
		}
	}
	return answer, err
}
