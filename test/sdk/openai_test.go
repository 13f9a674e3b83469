package sdk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func client() openai.Client {
	return openai.NewClient(option.WithBaseURL(address+"/v1/"), option.WithAPIKey("none"), option.WithMaxRetries(0))
}

func chats() *openai.ChatCompletionService {
	c := client()
	return &c.Chat.Completions
}

var thinkingOff = option.WithJSONSet("chat_template_kwargs", map[string]any{"enable_thinking": false})

func greeting() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:       "pocket",
		Temperature: openai.Float(0),
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.SystemMessage("You are a helpful assistant."),
			openai.UserMessage("Hello"),
		},
	}
}

const answer = "Hello! How can I help you?"

func TestChat(t *testing.T) {
	reply, err := chats().New(t.Context(), greeting(), thinkingOff)
	if err != nil {
		t.Fatal(err)
	}
	choice := reply.Choices[0]
	if choice.Message.Content != answer || choice.FinishReason != "stop" || choice.Message.Role != "assistant" ||
		reply.Object != "chat.completion" {
		t.Errorf("%+v", choice)
	}
	if u := reply.Usage; u.PromptTokens < 10 || u.CompletionTokens < 5 || u.TotalTokens != u.PromptTokens+
		u.CompletionTokens || u.PromptTokensDetails.CachedTokens > u.PromptTokens {
		t.Errorf("%+v", u)
	}
}

func TestChatStream(t *testing.T) {
	params := greeting()
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := chats().NewStreaming(t.Context(), params, thinkingOff)
	defer stream.Close()
	var whole openai.ChatCompletionAccumulator
	pieces := 0
	for stream.Next() {
		chunk := stream.Current()
		if !whole.AddChunk(chunk) {
			t.Fatalf("a chunk that does not belong: %s", chunk.RawJSON())
		}
		if len(chunk.Choices) > 0 && chunk.Choices[0].Delta.Content != "" {
			pieces++
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if whole.Choices[0].Message.Content != answer || whole.Choices[0].FinishReason != "stop" || pieces < 4 ||
		whole.Usage.CompletionTokens < 5 {
		t.Errorf("%d pieces: %+v, usage %+v", pieces, whole.Choices[0], whole.Usage)
	}
}

func weather() []openai.ChatCompletionToolUnionParam {
	one := func(name, description, argument string) openai.ChatCompletionToolUnionParam {
		return openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: name, Description: openai.String(description),
			Parameters: openai.FunctionParameters{"type": "object", "properties": map[string]any{
				argument: map[string]any{"type": "string"}}, "required": []string{argument}}})
	}
	return []openai.ChatCompletionToolUnionParam{
		one("get_weather", "Get the current weather of a city", "city"),
		one("read_file", "Read a file of the project", "path"),
	}
}

func TestToolsAndTheirResults(t *testing.T) {
	c := client()
	params := openai.ChatCompletionNewParams{Model: "pocket", Temperature: openai.Float(0), Tools: weather(),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("What is the weather in Paris?")}}
	reply, err := c.Chat.Completions.New(t.Context(), params, thinkingOff)
	if err != nil {
		t.Fatal(err)
	}
	choice := reply.Choices[0]
	if choice.FinishReason != "tool_calls" || len(choice.Message.ToolCalls) != 1 {
		t.Fatalf("%s", reply.RawJSON())
	}
	call := choice.Message.ToolCalls[0]
	var arguments map[string]any
	if err := json.Unmarshal([]byte(call.Function.Arguments), &arguments); err != nil ||
		call.Function.Name != "get_weather" || arguments["city"] != "Paris" || call.ID == "" {
		t.Errorf("%+v, %v", call, err)
	}
	params.Messages = append(params.Messages, choice.Message.ToParam(),
		openai.ToolMessage(`{"temperature": 21, "sky": "sunny"}`, call.ID))
	reply, err = c.Chat.Completions.New(t.Context(), params, thinkingOff)
	if err != nil {
		t.Fatal(err)
	}
	if text := reply.Choices[0].Message.Content; !strings.Contains(text, "sunny") || !strings.Contains(text, "21") {
		t.Errorf("after the tool's result: %q", text)
	}
}

func TestForcedToolStream(t *testing.T) {
	for name, choice := range map[string]openai.ChatCompletionToolChoiceOptionUnionParam{
		"required": {OfAuto: openai.String("required")},
		"named": {OfFunctionToolChoice: &openai.ChatCompletionNamedToolChoiceParam{
			Function: openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "read_file"}}},
	} {
		t.Run(name, func(t *testing.T) {
			params := greeting()
			params.Tools, params.ToolChoice, params.MaxCompletionTokens = weather(), choice, openai.Int(60)
			stream := chats().NewStreaming(t.Context(), params, thinkingOff)
			defer stream.Close()
			var whole openai.ChatCompletionAccumulator
			for stream.Next() {
				whole.AddChunk(stream.Current())
			}
			if err := stream.Err(); err != nil {
				t.Fatal(err)
			}
			calls := whole.Choices[0].Message.ToolCalls
			if len(calls) == 0 || name == "named" && calls[0].Function.Name != "read_file" ||
				calls[0].Function.Name != "read_file" && calls[0].Function.Name != "get_weather" {
				t.Errorf("asked with %q: %+v", name, whole.Choices[0])
			}
		})
	}
}

func TestAbortedStreamKeepsTheServerBusy(t *testing.T) {
	params := greeting()
	// no end token: only an abort ends it before the window does
	params.LogitBias = map[string]int64{"4088": -100, "4086": -100}
	ctx, abort := context.WithCancel(t.Context())
	defer abort()
	stream := chats().NewStreaming(ctx, params, thinkingOff)
	defer stream.Close()
	for got := ""; len(got) < 20 && stream.Next(); {
		if c := stream.Current(); len(c.Choices) > 0 {
			got += c.Choices[0].Delta.Content
		}
	}
	abort()
	for stream.Next() {
	}
	if err := stream.Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("the aborted stream ends with %v", err)
	}
	// The cancelled counter rises although the window had room for 8,000 tokens more, and the next request works.
	for deadline := time.Now().Add(time.Minute); !strings.Contains(metrics(t),
		`slipway_requests_total{outcome="cancelled"} 1`); {
		if time.Now().After(deadline) {
			t.Fatalf("the request is not cancelled:\n%s", metrics(t))
		}
		time.Sleep(5 * time.Millisecond)
	}
	TestChat(t)
}

func metrics(t *testing.T) string {
	t.Helper()
	response, err := http.Get(address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var page strings.Builder
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		page.WriteString(lines.Text() + "\n")
	}
	return page.String()
}

func TestErrorsBecomeTheClientsOwn(t *testing.T) {
	tests := []struct {
		name   string
		change func(*openai.ChatCompletionNewParams)
		status int
		param  string
		code   string
	}{
		{"n", func(p *openai.ChatCompletionNewParams) { p.N = openai.Int(5) }, 400, "n", "invalid_value"},
		{"unknown model", func(p *openai.ChatCompletionNewParams) { p.Model = "gpt-4o" }, 404, "model",
			"model_not_found"},
		{"image", func(p *openai.ChatCompletionNewParams) {
			p.Messages = append(p.Messages, openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
				openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{
					URL: "data:image/png;base64,AA=="})}))
		}, 400, "messages[2].content[0].type", "invalid_value"},
		{"beyond the window", func(p *openai.ChatCompletionNewParams) {
			p.Messages = append(p.Messages, openai.UserMessage(strings.Repeat("seven boats ", 6000)))
		}, 400, "", "context_length_exceeded"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			params := greeting()
			test.change(&params)
			_, err := chats().New(t.Context(), params, thinkingOff)
			var refused *openai.Error
			if !errors.As(err, &refused) {
				t.Fatalf("got %v", err)
			}
			if refused.StatusCode != test.status || refused.Param != test.param || refused.Code != test.code ||
				refused.Message == "" {
				t.Errorf("%d, param %q, code %q: %s", refused.StatusCode, refused.Param, refused.Code, refused.Message)
			}
		})
	}
}

func TestModelsAndTextCompletions(t *testing.T) {
	c := client()
	page, err := c.Models.List(t.Context())
	if err != nil || len(page.Data) != 1 || page.Data[0].ID != "pocket" || page.Data[0].OwnedBy != "slipway" {
		t.Errorf("%+v, %v", page, err)
	}
	reply, err := c.Completions.New(t.Context(), openai.CompletionNewParams{
		Model: "pocket", Temperature: openai.Float(0), MaxTokens: openai.Int(30),
		Prompt: openai.CompletionNewParamsPromptUnion{
			OfString: openai.String(
				"<|endoftext|><|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n")},
	})
	if err != nil || reply.Choices[0].Text != answer || reply.Choices[0].FinishReason != "stop" {
		t.Errorf("%+v, %v", reply, err)
	}
}
