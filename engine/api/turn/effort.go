package turn

import (
	"slices"
	"strings"
)

// efforts are the values of an effort that OpenAI has; the template judges further.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh"}

// SetEffort maps how much the model is to think to what its template knows: the effort itself, or whether to think at
// all. param is the effort's path in the client's request.
func (s *Service) SetEffort(q *Request, param, effort string) *Error {
	off := effort == "none" || effort == "minimal"
	switch switches := s.TemplateUses("enable_thinking"); {
	case !slices.Contains(efforts, effort):
		return Invalid(param, "is %.40q; allowed: %s", effort, strings.Join(efforts, ", "))
	case off && switches || !s.TemplateUses("reasoning_effort") && switches:
		s.SetThinking(q, !off)
	case s.TemplateUses("reasoning_effort"):
		q.Conversation.ReasoningEffort = effort
	default:
		return Invalid(param, "is %s, and this model's chat template has no such setting; leave it out", effort)
	}
	return nil
}

// SetThinking turns thinking on or off where the model's template has that switch; elsewhere it changes nothing.
func (s *Service) SetThinking(q *Request, on bool) { q.Conversation.EnableThinking = &on }
