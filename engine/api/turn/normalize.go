package turn

import (
	"regexp"

	"slipway/engine/text"
	"slipway/wire"
)

// Rule makes text stable that changes with every request (a date, a message id), so that the text after it is
// found in the cache. It acts on system messages only and is a setting of the server; every response to a prompt
// that it changed says so.
type Rule struct {
	Pattern     *regexp.Regexp
	Replacement string // $1 is the first group
}

// ReadRules takes a file of [wire.Rule]s.
func ReadRules(raw []byte) ([]Rule, error) {
	given, err := wire.ReadRules(raw)
	if err != nil {
		return nil, err
	}
	var rules []Rule
	for _, g := range given {
		rules = append(rules, Rule{regexp.MustCompile(*g.Pattern), *g.Replacement})
	}
	return rules, nil
}

// normalize applies the rules to the system messages and counts the places that changed.
func (s *Service) normalize(messages []text.Message) (places int) {
	for i := range messages {
		m := &messages[i]
		if m.Role != "system" {
			continue
		}
		for _, rule := range s.opt.Normalize {
			stable, n := rule.apply(m.Content)
			m.Content, places = stable, places+n
		}
	}
	return places
}

// apply replaces every match in its context (\B and the like see the characters around it) and counts those that
// changed.
func (r Rule) apply(text string) (stable string, places int) {
	var out []byte
	done := 0
	for _, at := range r.Pattern.FindAllStringSubmatchIndex(text, -1) {
		out = append(out, text[done:at[0]]...)
		begin := len(out)
		out = r.Pattern.ExpandString(out, r.Replacement, text, at)
		if string(out[begin:]) != text[at[0]:at[1]] {
			places++
		}
		done = at[1]
	}
	return string(out) + text[done:], places
}
