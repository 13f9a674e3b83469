package sample

import (
	"fmt"
	"math"
)

// Params says how a token is chosen. The zero value of a field is not always its neutral value: begin with [Neutral].
type Params struct {
	Temperature float64 // 0 takes the likeliest token; range [0, 2]
	TopK        int     // keep the K likeliest; 0 keeps all
	TopP        float64 // keep the smallest set of at least this mass; range (0, 1], 1 keeps all
	MinP        float64 // drop what is less likely than MinP times the likeliest; range [0, 1], 0 keeps all

	PresencePenalty  float64 // subtracted once from a token that the reply holds already; range [-2, 2], 0 is neutral
	FrequencyPenalty float64 // subtracted once for each time that the reply holds it; range [-2, 2], 0 is neutral
	// divides a positive and multiplies a negative logit of a token in prompt or reply; (0, 10], 1 is neutral
	RepetitionPenalty float64

	LogitBias map[int32]float64 // added to a token's logit after the penalties; each in [-100, 100]
}

// Neutral samples from the network's own distribution.
func Neutral() Params { return Params{Temperature: 1, TopP: 1, RepetitionPenalty: 1} }

// FieldError says that one parameter is out of its range. Field is its wire name.
type FieldError struct {
	Field   string
	Problem string
}

func (e *FieldError) Error() string { return e.Field + " " + e.Problem }

// Check returns a *FieldError for the first parameter out of range. vocabTokens bounds the ids of the bias.
func (p Params) Check(vocabTokens int) error {
	for _, r := range []struct {
		field     string
		value     float64
		low, high float64
		openLow   bool
	}{
		{"temperature", p.Temperature, 0, 2, false},
		{"top_p", p.TopP, 0, 1, true},
		{"min_p", p.MinP, 0, 1, false},
		{"presence_penalty", p.PresencePenalty, -2, 2, false},
		{"frequency_penalty", p.FrequencyPenalty, -2, 2, false},
		{"repetition_penalty", p.RepetitionPenalty, 0, 10, true},
	} {
		if math.IsNaN(r.value) || r.value < r.low || r.value > r.high || r.openLow && r.value == r.low {
			bracket := "["
			if r.openLow {
				bracket = "("
			}
			return &FieldError{r.field, fmt.Sprintf("is %v; it must be in %s%v, %v]", r.value, bracket, r.low, r.high)}
		}
	}
	if p.TopK < 0 {
		return &FieldError{"top_k", fmt.Sprintf("is %d; it must be 0 (off) or more", p.TopK)}
	}
	for id, bias := range p.LogitBias {
		if id < 0 || int(id) >= vocabTokens {
			return &FieldError{"logit_bias", fmt.Sprintf("names token %d; ids are in [0, %d)", id, vocabTokens)}
		}
		if math.IsNaN(bias) || bias < -100 || bias > 100 {
			return &FieldError{"logit_bias", fmt.Sprintf("gives token %d the bias %v; it must be in [-100, 100]", id,
				bias)}
		}
	}
	return nil
}

// UsesHistory reports whether the choice depends on the tokens before.
func (p Params) UsesHistory() bool {
	return p.PresencePenalty != 0 || p.FrequencyPenalty != 0 || p.RepetitionPenalty != 1
}
