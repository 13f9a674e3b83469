package sdk_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

func response(input string) responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: "pocket", Temperature: openai.Float(0),
		Instructions: openai.String("You are a helpful assistant."),
		Reasoning:    shared.ReasoningParam{Effort: "none"},
		Input:        responses.ResponseNewParamsInputUnion{OfString: openai.String(input)}}
}

func TestResponse(t *testing.T) {
	c := client()
	r, err := c.Responses.New(t.Context(), response("Hello"))
	if err != nil {
		t.Fatal(err)
	}
	if r.OutputText() != answer || r.Status != "completed" || r.Usage.InputTokens < 10 || r.Usage.TotalTokens !=
		r.Usage.InputTokens+r.Usage.OutputTokens {
		t.Errorf("%s", r.RawJSON())
	}
	again, err := c.Responses.Get(t.Context(), r.ID, responses.ResponseGetParams{})
	if err != nil || again.OutputText() != answer {
		t.Errorf("%+v, %v", again, err)
	}
	if err := c.Responses.Delete(t.Context(), r.ID); err != nil {
		t.Error(err)
	}
	var refused *openai.Error
	if _, err = c.Responses.Get(t.Context(), r.ID, responses.ResponseGetParams{}); !errors.As(err, &refused) ||
		refused.StatusCode != 404 {
		t.Errorf("after it was deleted: %v", err)
	}
	params := response(strings.Repeat("seven boats ", 6000))
	if _, err = c.Responses.New(t.Context(), params); !errors.As(err, &refused) ||
		refused.Code != "context_length_exceeded" || !strings.Contains(refused.Message, "maximum context length is") {
		t.Errorf("beyond the window: %v", err)
	}
}

func TestResponseToolsInAStream(t *testing.T) {
	c := client()
	params := response("What is the weather in Paris?")
	schema := map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}},
		"required": []string{"city"}}
	params.Tools = []responses.ToolUnionParam{responses.ToolParamOfFunction("get_weather", schema, false)}
	params.Tools[0].OfFunction.Description = openai.String("Get the current weather of a city")
	stream := c.Responses.NewStreaming(t.Context(), params)
	defer stream.Close()
	var whole responses.Response
	arguments, events := "", int64(0)
	for stream.Next() {
		e := stream.Current()
		if e.SequenceNumber != events {
			t.Errorf("event %d has the number %d", events, e.SequenceNumber)
		}
		events++
		switch e.Type {
		case "response.function_call_arguments.delta":
			arguments += e.Delta
		case "response.completed":
			whole = e.Response
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if len(whole.Output) == 0 {
		t.Fatal("the stream does not end")
	}
	call := whole.Output[len(whole.Output)-1].AsFunctionCall()
	var input struct{ City string }
	if call.Name != "get_weather" || call.Arguments != arguments || json.Unmarshal([]byte(arguments), &input) != nil ||
		input.City != "Paris" {
		t.Fatalf("%s, streamed %q", whole.RawJSON(), arguments)
	}
	output := responses.ResponseInputItemParamOfFunctionCallOutput(`{"temperature": 21, "sky": "sunny"}`)
	output.OfFunctionCallOutput.CallID = openai.String(call.CallID)
	params.PreviousResponseID = openai.String(whole.ID)
	params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{output}}
	r, err := c.Responses.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	if said := r.OutputText(); !strings.Contains(said, "sunny") || !strings.Contains(said, "21") {
		t.Errorf("after the tool's result: %q", said)
	}
}
