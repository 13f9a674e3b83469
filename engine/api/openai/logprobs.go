package openai

import "slipway/engine/api/turn"

type logprobs struct {
	Content []tokenLogprob `json:"content"`
	Refusal *string        `json:"refusal"`
}

type tokenLogprob struct {
	Token   string       `json:"token"`
	Logprob float64      `json:"logprob"`
	Bytes   []int        `json:"bytes"`
	Top     []topLogprob `json:"top_logprobs"`
}

type topLogprob struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

// entriesOf appends the tokens in OpenAI's form.
func entriesOf(tokens []turn.Token, to []tokenLogprob) []tokenLogprob {
	for _, t := range tokens {
		entry := tokenLogprob{t.Text, t.Logprob, bytesOf(t.Bytes), []topLogprob{}}
		for _, top := range t.Top {
			entry.Top = append(entry.Top, topLogprob{top.Text, top.Logprob, bytesOf(top.Bytes)})
		}
		to = append(to, entry)
	}
	return to
}

// bytesOf writes bytes as numbers, which JSON would write as base64.
func bytesOf(raw []byte) []int {
	bytes := []int{}
	for _, b := range raw {
		bytes = append(bytes, int(b))
	}
	return bytes
}
