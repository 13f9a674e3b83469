package turn

import (
	"bytes"
	"encoding/json"
	"regexp"

	"slipway/engine/text"
)

// Tool is one function that the model may call.
type Tool struct {
	Param       string // path in the client's request, for errors
	Name        string
	Description string          // empty: none
	Parameters  json.RawMessage // JSON Schema, an object, order of members kept; nil: none given
	Strict      bool            // a call whose arguments do not fulfil the schema is none
}

// toolName bounds a name to what every template writes and every reply's parser reads.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`)

// checkTools refuses tools that cannot be told apart, and a choice of what is not among them.
func checkTools(tools []Tool, chosen Choice) *Error {
	names := map[string]bool{}
	for _, t := range tools {
		switch {
		case !toolName.MatchString(t.Name):
			return Invalid(t.Param+".name", "must be 1 to 128 letters, digits, _, - or .")
		case names[t.Name]:
			return Invalid(t.Param+".name", "is %.64q a second time; every tool needs a name of its own", t.Name)
		}
		names[t.Name] = true
	}
	switch {
	case chosen.Calling == CallNamed && !names[chosen.Name]:
		return Invalid(chosen.Param, "names the function %.64q, which is not among the tools", chosen.Name)
	case chosen.Calling == CallRequired && len(tools) == 0:
		return Invalid(chosen.Param, "requires a call, but there are no tools")
	}
	return nil
}

// templateTools writes tools as chat templates read them; each is written alike whichever wire it came by, so that its
// tokens are.
func templateTools(tools []Tool) []json.RawMessage {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	}
	var written []json.RawMessage
	for _, t := range tools {
		var document bytes.Buffer
		encoder := json.NewEncoder(&document)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(struct {
			Type     string   `json:"type"`
			Function function `json:"function"`
		}{"function", function{t.Name, t.Description, t.Parameters}}); err != nil {
			panic(err) // the schema is part of a body that was read
		}
		written = append(written, document.Bytes())
	}
	return written
}

// Format is what the content of a reply must be: JSON.
type Format struct {
	Param  string          // path in the client's request, for errors
	Schema json.RawMessage // JSON Schema, order of members kept; nil: any object
}

// check refuses what of a conversation's request cannot be done.
func (q *Request) check() *Error {
	if err := checkTools(q.Tools, q.Choice); err != nil || !q.Continue {
		return err
	}
	var last text.Message
	if n := len(q.Conversation.Messages); n > 0 {
		last = q.Conversation.Messages[n-1]
	}
	switch {
	case last.Role != "assistant":
		return Invalid(q.Param, "must end with a message of the assistant to be continued")
	case len(last.ToolCalls) > 0:
		return Invalid(q.Param, "ends with tool calls, which cannot be continued; send their results")
	case q.Choice.Calling == CallRequired, q.Choice.Calling == CallNamed:
		return Invalid(q.Choice.Param, "cannot be forced while the last message of the assistant is continued")
	case q.Format != nil:
		return Invalid(q.Format.Param, "cannot be kept while the last message of the assistant is continued")
	}
	return nil
}
