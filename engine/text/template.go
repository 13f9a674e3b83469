package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ardanlabs/jinja"

	"slipway/engine/text/family"
	"slipway/engine/text/pyjson"
)

// Template is a model's chat template, compiled. It is immutable and safe for concurrent use. A template is as trusted
// as the weights beside it; a conversation is not trusted at all.
type Template struct {
	source   string
	names    map[string]bool // that its tags use
	compiled *jinja.Template
	literals []string // texts of the added tokens, none empty
	family   *family.Family
}

// NewTemplate compiles a chat template of a family in jinja2's language (trim_blocks and lstrip_blocks on). addedTokens
// are the texts of the tokenizer's added tokens, which a person's string may spell out: see [Prompt].
func NewTemplate(f *family.Family, source string, addedTokens []string) (t *Template, err error) {
	defer recoverTemplate(&err)
	if nestedTooDeep(source) {
		return nil, &TemplateError{Message: "its brackets are nested too deep"}
	}
	// jinja2 reads every line end as \n and leaves out one at the end.
	source = strings.TrimSuffix(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(source), "\n")
	compiled, err := jinja.Compile(counted(renameFilters(source)))
	if err != nil {
		return nil, &TemplateError{Message: err.Error()}
	}
	return &Template{family: f, source: source, names: namesIn(source), compiled: compiled,
		literals: slices.DeleteFunc(slices.Clone(addedTokens), func(s string) bool { return s == "" })}, nil
}

// Uses reports whether the template names a variable. One that it does not name can change no prompt.
func (t *Template) Uses(variable string) bool { return t.names[variable] }

// Render gives the prompt of a conversation. Errors: *ConversationError when the conversation cannot be given to any
// template, *TemplateError when this template refuses (Raised) or fails.
func (t *Template) Render(c Conversation) (p Prompt, err error) {
	defer recoverTemplate(&err)
	in, err := readConversation(c)
	if err != nil {
		return Prompt{}, err
	}
	m := newMarker(t.literals)
	m.choose(func(visit func(string)) {
		visit(t.source)
		in.eachString(visit)
	}, in.eachString)

	variables := in.variables(m, t.family)
	for name, filter := range ourFilters {
		variables[ourFilter+name] = jinja.NewCallable(name, filter)
	}
	new(templateLimits).variables(variables)
	var raised *TemplateError
	variables["raise_exception"] = jinja.NewCallable("raise_exception",
		func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
			raised = &TemplateError{Raised: true}
			if len(args) > 0 {
				raised.Message = m.clean(pythonString(args[0]))
			}
			return jinja.Undefined(), raised
		})
	rendered, err := t.compiled.RenderValues(variables)
	switch {
	case raised != nil:
		return Prompt{}, raised
	case err != nil:
		return Prompt{}, &TemplateError{Message: m.clean(err.Error())}
	}
	return m.prompt(rendered), nil
}

// recoverTemplate turns a panic of the template library into an error: a template comes from outside.
func recoverTemplate(err *error) {
	if r := recover(); r != nil {
		*err = &TemplateError{Message: fmt.Sprint(r)}
	}
}

// conversationInput is a conversation with its JSON read.
type conversationInput struct {
	Conversation
	arguments [][]any // of each message's calls: *pyjson.Object
	tools     []any   // *pyjson.Object
	kwargs    *pyjson.Object
}

func readConversation(c Conversation) (*conversationInput, error) {
	in := &conversationInput{Conversation: c, arguments: make([][]any, len(c.Messages)), kwargs: &pyjson.Object{}}
	for i, m := range c.Messages {
		for k, call := range m.ToolCalls {
			arguments, err := readArguments(call.Arguments)
			if err != nil {
				return nil, &ConversationError{fmt.Sprintf("messages[%d].tool_calls[%d].arguments", i, k), err.Error()}
			}
			in.arguments[i] = append(in.arguments[i], arguments)
		}
	}
	for i, raw := range c.Tools {
		v, err := pyjson.Decode(raw)
		if _, ok := v.(*pyjson.Object); err != nil || !ok {
			return nil, &ConversationError{fmt.Sprintf("tools[%d]", i), "is not a JSON object"}
		}
		in.tools = append(in.tools, v)
	}
	if len(c.Kwargs) > 0 {
		v, err := pyjson.Decode(c.Kwargs)
		if o, ok := v.(*pyjson.Object); ok {
			in.kwargs = o
		} else if err != nil || v != nil {
			return nil, &ConversationError{"chat_template_kwargs", "is not a JSON object"}
		}
	}
	for _, name := range in.kwargs.Keys {
		if reservedNames[name] {
			return nil, &ConversationError{"chat_template_kwargs." + name, "is the template's own; it cannot be set"}
		}
	}
	return in, nil
}

var errArguments = errors.New("is not a JSON object, nor a string that holds one")

// readArguments takes an object, or a string that holds one; empty, null and "" are an object without members.
func readArguments(raw json.RawMessage) (*pyjson.Object, error) {
	text := string(raw)
	for depth := 0; depth < 2; depth++ {
		if strings.TrimSpace(text) == "" {
			return &pyjson.Object{}, nil
		}
		v, err := pyjson.Decode([]byte(text))
		if err != nil {
			return nil, errArguments
		}
		switch v := v.(type) {
		case nil:
			return &pyjson.Object{}, nil
		case *pyjson.Object:
			return v, nil
		case string:
			text = v
		default:
			return nil, errArguments
		}
	}
	return nil, errArguments
}

// eachString visits all that people wrote.
func (in *conversationInput) eachString(visit func(string)) {
	for i, m := range in.Messages {
		visit(m.Role)
		visit(m.Content)
		visit(m.ToolCallID)
		visit(m.Name)
		if m.ReasoningContent != nil {
			visit(*m.ReasoningContent)
		}
		for k, call := range m.ToolCalls {
			visit(call.ID)
			visit(call.Name)
			pyjson.EachString(in.arguments[i][k], visit)
		}
	}
	for _, tool := range in.tools {
		pyjson.EachString(tool, visit)
	}
	visit(in.ReasoningEffort)
	pyjson.EachString(in.kwargs, visit)
}

// variables gives the template's variables, people's strings marked.
func (in *conversationInput) variables(m *marker, f *family.Family) map[string]jinja.Value {
	mark := func(s string) string { return m.mark(s) }
	messages := make([]jinja.Value, len(in.Messages))
	for i, message := range in.Messages {
		messages[i] = messageValue(message, in.arguments[i], m, f)
	}
	variables := map[string]jinja.Value{
		"messages":              jinja.NewList(messages),
		"tools":                 jinja.None(),
		"add_generation_prompt": jinja.NewBool(in.AddGenerationPrompt),
	}
	if len(in.tools) > 0 {
		variables["tools"] = templateValue(in.tools, mark)
	}
	if in.EnableThinking != nil {
		variables["enable_thinking"] = jinja.NewBool(*in.EnableThinking)
	}
	effort, renamed := f.Efforts[in.ReasoningEffort]
	switch {
	case in.ReasoningEffort == "":
	case in.ReasoningEffort == "none":
		variables["enable_thinking"] = jinja.NewBool(false)
	case renamed:
		variables["reasoning_effort"] = jinja.NewString(effort)
	default:
		variables["reasoning_effort"] = jinja.NewString(mark(in.ReasoningEffort))
	}
	for _, name := range in.kwargs.Keys {
		variables[name] = templateValue(in.kwargs.Values[name], mark)
	}
	return variables
}

func messageValue(message Message, arguments []any, m *marker, f *family.Family) jinja.Value {
	value := jinja.NewDict()
	d := value.AsDict()
	d.Set("role", jinja.NewString(m.mark(message.Role)))
	var templates []string // tags that templates look for in this content
	if message.Role == "assistant" && message.ReasoningContent == nil {
		templates = f.TemplateTags
	}
	content := m.mark(message.Content, templates...)
	if message.Role == "user" && f.ResultOpens != "" {
		content = m.markFramed(message.Content, f.ResultOpens, f.ResultCloses)
	}
	d.Set("content", jinja.NewString(content))
	if message.ReasoningContent != nil {
		d.Set("reasoning_content", jinja.NewString(m.mark(*message.ReasoningContent)))
	}
	if len(message.ToolCalls) > 0 {
		calls := make([]jinja.Value, len(message.ToolCalls))
		for i, call := range message.ToolCalls {
			function := jinja.NewDict()
			function.AsDict().Set("name", jinja.NewString(m.mark(call.Name)))
			function.AsDict().Set("arguments", templateValue(arguments[i], func(s string) string { return m.mark(s) }))
			calls[i] = jinja.NewDict()
			if call.ID != "" {
				calls[i].AsDict().Set("id", jinja.NewString(m.mark(call.ID)))
			}
			calls[i].AsDict().Set("type", jinja.NewString("function"))
			calls[i].AsDict().Set("function", function)
		}
		d.Set("tool_calls", jinja.NewList(calls))
	}
	if message.ToolCallID != "" {
		d.Set("tool_call_id", jinja.NewString(m.mark(message.ToolCallID)))
	}
	if message.Name != "" {
		d.Set("name", jinja.NewString(m.mark(message.Name)))
	}
	return value
}
