package turn

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"slipway/engine/text"
)

// Rule makes text stable that changes with every request (a date, a message id), so that what stands behind it is found in
// the cache. It acts on system messages only, is chosen by whoever runs the server, and is told in every response that it
// changed something for.
type Rule struct {
	Pattern     *regexp.Regexp
	Replacement string // $1 stands for the first group
}

// ReadRules takes a JSON array of {"pattern", "replacement"}. Patterns are Go's regular expressions.
func ReadRules(raw []byte) ([]Rule, error) {
	var given []struct {
		Pattern     *string `json:"pattern"`
		Replacement *string `json:"replacement"`
	}
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&given); err != nil {
		return nil, fmt.Errorf(`it must be a JSON array of {"pattern": "...", "replacement": "..."}: %w`, err)
	}
	var rules []Rule
	for i, g := range given {
		if g.Pattern == nil || g.Replacement == nil || *g.Pattern == "" {
			return nil, fmt.Errorf("rule %d needs a pattern and a replacement", i+1)
		}
		pattern, err := regexp.Compile(*g.Pattern)
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		if pattern.MatchString("") {
			return nil, fmt.Errorf("rule %d matches the empty text, and so everywhere", i+1)
		}
		rules = append(rules, Rule{pattern, *g.Replacement})
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

// apply replaces every match, seen where it stands (\B and its like look at what is around), and counts those that changed.
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
