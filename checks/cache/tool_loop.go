package cache

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"slipway/checks/client"
	"slipway/checks/record"
)

// weather is the tool of the scene.
var weather = client.Tool{Type: "function", Function: client.Function{
	Name: "get_weather", Description: "Get the current weather of a city",
	Parameters: map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}},
		"required": []string{"city"}}}}

var number = regexp.MustCompile(`-?\d+`)

// toolLoop: the history ends with a tool's result, and then with another one.
func toolLoop(st *stage) error {
	first := 11 + st.random.IntN(9)
	second := first + 10
	city := []string{"Oslo", "Lisbon", "Prague", "Dublin", "Vienna"}[st.random.IntN(5)]
	ask := func(fresh string, degrees int) (*client.Reply, error) {
		call := client.ToolCall{ID: "call_0001", Type: "function"}
		call.Function.Name, call.Function.Arguments = "get_weather", fmt.Sprintf(`{"city": %q}`, city)
		result := client.Say("tool", fmt.Sprintf(`{"temperature": %d, "sky": "sunny"}`, degrees))
		result.ToolCallID = call.ID
		messages := []client.Message{client.Say("user", fresh+"What is the weather in "+city+"?"),
			{Role: "assistant", ToolCalls: []client.ToolCall{call}}, result}
		return st.ask(messages, []client.Tool{weather})
	}
	old := 0
	for _, degrees := range []int{first, second, first} {
		reply, err := ask("", degrees)
		if err != nil {
			return err
		}
		st.of++
		said := number.FindAllString(reply.Answer(), -1)
		switch {
		case slices.Contains(said, strconv.Itoa(degrees)):
			st.hits++
		case old != 0 && slices.Contains(said, strconv.Itoa(old)):
			st.bad(record.Fail, "answered with the tool's old result, %d, where it says %d now: a stale answer", old,
				degrees)
		default:
			last := reply
			without, err := ask(st.o.Nonce()+"\n", degrees)
			st.last = last
			if err != nil {
				return err
			}
			if slices.Contains(number.FindAllString(without.Answer(), -1), strconv.Itoa(degrees)) {
				st.bad(record.Fail, "answered %q where the tool says %d; without the cache the same is "+
					"answered rightly", short(reply.Answer()), degrees)
			} else {
				st.bad(record.Unknown, "the model does not use the tool's result without the cache either, so "+
					"nothing can be said")
			}
		}
		old = degrees
		st.notes = cachedWords(reply)
	}
	return nil
}
