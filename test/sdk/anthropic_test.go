package sdk_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

func theirs() anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL(address), option.WithAPIKey("none"), option.WithMaxRetries(0))
}

func message(text string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: "pocket", MaxTokens: 100, Temperature: anthropic.Float(0),
		System:   []anthropic.TextBlockParam{{Text: "You are a helpful assistant."}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))},
	}
}

func TestAnthropicMessage(t *testing.T) {
	c := theirs()
	m, err := c.Messages.New(t.Context(), message("Hello"))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Content) != 1 || m.Content[0].Text != answer || m.StopReason != anthropic.StopReasonEndTurn ||
		m.Usage.InputTokens+m.Usage.CacheReadInputTokens < 10 || m.Usage.OutputTokens < 5 {
		t.Errorf("%s", m.RawJSON())
	}
	counted, err := c.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: "pocket",
		System: anthropic.MessageCountTokensParamsSystemUnion{
			OfString: anthropic.String("You are a helpful assistant.")},
		Messages: message("Hello").Messages})
	if err != nil || counted.InputTokens != m.Usage.InputTokens+m.Usage.CacheReadInputTokens {
		t.Errorf("counted %+v, %v; read %+v", counted, err, m.Usage)
	}
	page, err := c.Models.List(t.Context(), anthropic.ModelListParams{})
	if err != nil || len(page.Data) != 1 || page.Data[0].ID != "pocket" || page.Data[0].CreatedAt.IsZero() {
		t.Errorf("%+v, %v", page, err)
	}
}

// accumulated puts a stream together as the client does.
func accumulated(t *testing.T, params anthropic.MessageNewParams) anthropic.Message {
	t.Helper()
	c := theirs()
	stream := c.Messages.NewStreaming(t.Context(), params)
	defer stream.Close()
	var whole anthropic.Message
	for stream.Next() {
		if err := whole.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return whole
}

func TestAnthropicToolsAndThinkingInAStream(t *testing.T) {
	params := message("What is the weather in Paris?")
	params.System = nil
	params.Tools = []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{
		Properties: map[string]any{"city": map[string]any{"type": "string"}}, Required: []string{"city"}},
		"get_weather")}
	params.Tools[0].OfTool.Description = anthropic.String("Get the current weather of a city")
	whole := accumulated(t, params)
	last := whole.Content[len(whole.Content)-1]
	var input struct{ City string }
	if whole.StopReason != anthropic.StopReasonToolUse || last.Name != "get_weather" ||
		json.Unmarshal(last.Input, &input) != nil || input.City != "Paris" {
		t.Fatalf("%+v", whole)
	}
	params.Messages = append(params.Messages, whole.ToParam(), anthropic.NewUserMessage(
		anthropic.NewToolResultBlock(last.ID, `{"temperature": 21, "sky": "sunny"}`, false)))
	said := accumulated(t, params).Content[0].Text
	if !strings.Contains(said, "sunny") || !strings.Contains(said, "21") {
		t.Errorf("after the tool's result: %q", said)
	}

	params = message("Hello")
	params.Thinking = anthropic.ThinkingConfigParamOfEnabled(1024)
	params.MaxTokens = 2000
	whole = accumulated(t, params)
	if b := whole.Content[0]; b.Type != "thinking" || b.Thinking == "" || b.Signature == "" {
		t.Fatalf("%+v", whole)
	}
	params.Messages = append(params.Messages, whole.ToParam(), params.Messages[0])
	accumulated(t, params) // its thinking is accepted back
}

func TestAnthropicErrorsBecomeTheClientsOwn(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*anthropic.MessageNewParams)
		status int
		says   string
	}{
		"unknown model": {func(p *anthropic.MessageNewParams) { p.Model = "claude-x" }, 404, "pocket"},
		"image": {func(p *anthropic.MessageNewParams) {
			image := anthropic.NewImageBlockBase64("image/png", "AA==")
			p.Messages = []anthropic.MessageParam{anthropic.NewUserMessage(image)}
		}, 400, "messages[0].content[0].type"},
		"beyond the window": {func(p *anthropic.MessageNewParams) {
			p.Messages = message(strings.Repeat("seven boats ", 6000)).Messages
		}, 400, "prompt is too long: "},
	} {
		t.Run(name, func(t *testing.T) {
			params := message("Hello")
			test.change(&params)
			c := theirs()
			_, err := c.Messages.New(t.Context(), params)
			var refused *anthropic.Error
			if !errors.As(err, &refused) {
				t.Fatalf("got %v", err)
			}
			if refused.StatusCode != test.status || !strings.Contains(refused.RawJSON(), test.says) ||
				refused.RequestID == "" {
				t.Errorf("%d, request %q: %s", refused.StatusCode, refused.RequestID, refused.RawJSON())
			}
		})
	}
}
