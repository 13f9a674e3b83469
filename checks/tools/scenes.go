package tools

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"slipway/checks/client"
)

var (
	cities = []string{"Oslo", "Cairo", "Lima", "Tokyo", "Madrid", "Berlin", "Dublin", "Athens", "Vienna", "Prague",
		"Lisbon", "Helsinki", "Nairobi", "Toronto"}
	folders = []string{"anchor", "bridge", "canyon", "depot", "garden", "lantern", "market", "quarry"}
	number  = regexp.MustCompile(`-?\d+`)
)

func (st *stage) city() string { return cities[st.random.IntN(len(cities))] }

func weather(city string) call { return call{"get_weather", map[string]any{"city": city}} }

func say(text string) []client.Message { return []client.Message{client.Say("user", text)} }

func oneCall(st *stage) error {
	city := st.city()
	reply, err := st.ask(say("What is the weather in "+city+"?"), "", false)
	if err == nil {
		st.expect(reply, weather(city))
	}
	return err
}

// answered adds a reply with its calls and a result for each.
func answered(messages []client.Message, reply *client.Reply, results ...string) []client.Message {
	turn := client.Message{Role: "assistant", ToolCalls: reply.Calls}
	if text := reply.Answer(); text != "" {
		turn.Content = &text
	}
	messages = append(slices.Clip(messages), turn)
	for i, call := range reply.Calls {
		result := client.Say("tool", results[min(i, len(results)-1)])
		result.ToolCallID = call.ID
		messages = append(messages, result)
	}
	return messages
}

// weatherTurn asks for a city's weather and for an answer that rests on the result.
func (st *stage) weatherTurn(messages []client.Message) ([]client.Message, error) {
	city, degrees := st.city(), 11+st.random.IntN(25)
	messages = append(slices.Clip(messages), client.Say("user", "What is the weather in "+city+"?"))
	reply, err := st.ask(messages, "", false)
	if err != nil {
		return nil, err
	}
	st.expect(reply, weather(city))
	if st.why != "" {
		return nil, nil
	}
	messages = answered(messages, reply, fmt.Sprintf(`{"temperature": %d, "sky": "sunny"}`, degrees))
	if reply, err = st.ask(messages, "", false); err != nil {
		return nil, err
	}
	if len(reply.Calls) > 0 || !slices.Contains(number.FindAllString(reply.Answer(), -1), strconv.Itoa(degrees)) {
		st.bad("the tool said %d degrees, and the answer is %q with %d more calls", degrees, short(reply.Answer()),
			len(reply.Calls))
	}
	return append(messages, client.Say("assistant", reply.Answer())), nil
}

func resultUsed(st *stage) error {
	_, err := st.weatherTurn(nil)
	return err
}

func severalTurns(st *stage) error {
	var messages []client.Message
	for range 2 {
		var err error
		if messages, err = st.weatherTurn(messages); err != nil || st.why != "" {
			return err
		}
	}
	path := folders[st.random.IntN(len(folders))] + "/" + folders[st.random.IntN(len(folders))] + ".go"
	reply, err := st.ask(append(messages, client.Say("user", "Read the file "+path+".")), "", false)
	if err == nil {
		st.expect(reply, call{"read_file", map[string]any{"path": path}})
	}
	return err
}

func twoCalls(st *stage) error {
	at := st.random.Perm(len(cities))
	a, b := cities[at[0]], cities[at[1]]
	reply, err := st.ask(say("What is the weather in "+a+" and in "+b+"? Ask for both at once."), "", false)
	if err == nil {
		st.expect(reply, weather(a), weather(b))
	}
	return err
}

func everyType(st *stage) error {
	with := map[string]any{
		// a number in a text stays a text
		"text":  folders[st.random.IntN(len(folders))] + " " + strconv.Itoa(st.random.IntN(90)+10),
		"count": float64(st.random.IntN(900) + 100), "ratio": float64(st.random.IntN(98)+1) / 4,
		"open": st.random.IntN(2) == 0, "missing": nil,
		"list":  []any{float64(st.random.IntN(9)), float64(st.random.IntN(9)), float64(st.random.IntN(9))},
		"place": map[string]any{"row": float64(st.random.IntN(40)), "name": st.city()},
	}
	raw, err := json.Marshal(with)
	if err != nil {
		return err
	}
	reply, err := st.ask(say("Call save_record with exactly these arguments: "+string(raw)), "", false)
	if err == nil {
		st.expect(reply, call{"save_record", with})
	}
	return err
}

// onePiece asks the same as a stream and in one piece: the calls must be the same.
func onePiece(st *stage) error {
	question := say("What is the weather in " + st.city() + "?")
	streamed, err := st.ask(question, "", false)
	if err != nil {
		return err
	}
	whole, err := st.ask(question, "", true)
	if err != nil {
		return err
	}
	if len(streamed.Calls) == 0 || len(streamed.Calls) != len(whole.Calls) {
		st.bad("%d calls as a stream and %d in one piece", len(streamed.Calls), len(whole.Calls))
		return nil
	}
	for i, c := range streamed.Calls {
		with, err := arguments(c)
		if err != nil {
			return nil // said already
		}
		if difference := (call{c.Function.Name, with}).differs(whole.Calls[i]); difference != "" {
			st.bad("the server's fault: in one piece the call is another than as a stream: %s", difference)
		}
	}
	return nil
}

func required(st *stage) error {
	city := st.city()
	reply, err := st.ask(say("What is the weather in "+city+"?"), "required", false)
	if err == nil {
		st.expect(reply, weather(city))
	}
	return err
}

func forbidden(st *stage) error {
	reply, err := st.ask(say("What is the weather in "+st.city()+"?"), "none", false)
	if err == nil && len(reply.Calls) > 0 {
		st.bad("the server's fault: tool_choice is none, and it calls %s", reply.Calls[0].Function.Name)
	}
	return err
}

func notNeeded(st *stage) error {
	reply, err := st.ask(say("Hello"), "", false)
	if err == nil && (len(reply.Calls) > 0 || reply.Answer() == "") {
		st.bad("a greeting is answered with %d calls and %q", len(reply.Calls), short(reply.Answer()))
	}
	return err
}
