package sample

import (
	"encoding/json"
	"fmt"
)

// ParseDefaults reads the sampling values of a model's generation_config.json. What the file leaves out is neutral;
// "do_sample": false means temperature 0. Unrelated members are not looked at.
func ParseDefaults(generationConfig []byte) (Params, error) {
	p := Neutral()
	var file struct {
		DoSample          *bool    `json:"do_sample"`
		Temperature       *float64 `json:"temperature"`
		TopK              *int     `json:"top_k"`
		TopP              *float64 `json:"top_p"`
		MinP              *float64 `json:"min_p"`
		PresencePenalty   *float64 `json:"presence_penalty"`
		FrequencyPenalty  *float64 `json:"frequency_penalty"`
		RepetitionPenalty *float64 `json:"repetition_penalty"`
	}
	if err := json.Unmarshal(generationConfig, &file); err != nil {
		return p, fmt.Errorf("the sampling defaults cannot be read: %w", err)
	}
	for to, from := range map[*float64]*float64{
		&p.Temperature: file.Temperature, &p.TopP: file.TopP, &p.MinP: file.MinP,
		&p.PresencePenalty:  file.PresencePenalty,
		&p.FrequencyPenalty: file.FrequencyPenalty, &p.RepetitionPenalty: file.RepetitionPenalty,
	} {
		if from != nil {
			*to = *from
		}
	}
	if file.TopK != nil {
		p.TopK = *file.TopK
	}
	if file.DoSample != nil && !*file.DoSample {
		p.Temperature = 0
	}
	return p, p.Check(0)
}
