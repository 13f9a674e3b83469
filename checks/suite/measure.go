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
	Name       string // of the text
	Text       string
	Fresh      bool // begin with a random word, so that nothing can come from a cache
	MaxTokens  int  // of the answer, 1 to 100000
	Repeat     int  // 1 to 100000
	Thinking   bool
	ShowAnswer bool
	Stage      func(measure.Stage) // called before each wait that may be long
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
