package turn

import (
	"encoding/json"
	"strings"
)

// ReadArguments gives a call's arguments as an object, which templates read them as: what the client sent, a string
// that holds one, or nothing. What is none, such as the arguments of a call that was cut off, is one parameter of the
// name arguments, so that the conversation goes on and the model sees what it wrote.
func ReadArguments(raw json.RawMessage) json.RawMessage {
	written := string(raw)
	for range 3 { // a string, and one within it
		text := strings.TrimSpace(written)
		var inner string
		switch {
		case text == "" || text == "null":
			return nil
		case !json.Valid([]byte(text)):
		case text[0] == '{':
			return json.RawMessage(text)
		case text[0] == '"' && json.Unmarshal([]byte(text), &inner) == nil:
			written = inner
			continue
		}
		break
	}
	object, err := json.Marshal(map[string]string{"arguments": written})
	if err != nil {
		panic(err) // a string
	}
	return object
}
