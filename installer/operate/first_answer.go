package operate

import (
	"encoding/json"

	"slipway/atomicfile"
	"slipway/installer/apply"
)

// FirstAnswer is what the model said when set-up had started it. It is kept, so that who did not see set-up's own
// answer still gets it.
type FirstAnswer struct {
	Digest   string `json:"digest"` // of the plan
	Model    string `json:"model"`
	Question string `json:"question"`
	Answer   string `json:"answer"`
	Speed    *Speed `json:"speed,omitempty"` // of that answer, where it could be measured
}

// keepAnswer writes it down, once: the same answer again may come at another speed. Where writing fails nothing is lost
// but this.
func (o *Operator) keepAnswer(a FirstAnswer) {
	o.inHome(func(home *apply.Home) error {
		if old := firstAnswer(home); old != nil {
			same := *old
			same.Speed = a.Speed
			if same == a {
				return nil
			}
		}
		data, err := json.MarshalIndent(a, "", "  ")
		if err != nil {
			return err
		}
		return atomicfile.Replace(home.Root, apply.FirstAnswerPath, append(data, '\n'), 0o600)
	})
}

// maxFirstAnswerBytes bounds what is read; an answer has firstAnswerTokens.
const maxFirstAnswerBytes = 64 << 10

// firstAnswer reads it; nil when there is none.
func firstAnswer(home *apply.Home) *FirstAnswer {
	info, err := home.Root.Lstat(apply.FirstAnswerPath)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFirstAnswerBytes {
		return nil
	}
	data, err := home.Root.ReadFile(apply.FirstAnswerPath)
	var a FirstAnswer
	if err != nil || json.Unmarshal(data, &a) != nil {
		return nil
	}
	return &a
}
