package web

import (
	"encoding/json"

	"slipway/engine/api/turn"
)

// WrongModel takes the member model and refuses every model but the one that is served, with the list.
func WrongModel(o *Object, turns *turn.Service) *turn.Error {
	name, given := o.Text("model")
	if o.Err() != nil {
		return o.Err()
	}
	if !given {
		return turn.Invalid("model", "is required; this server has %q", turns.Model().ID)
	}
	return turns.WrongModel(name)
}

// Items gives the elements of an array of messages, at most [turn.MostMessages]; what says what one is.
func (o *Object) Items(name string) []json.RawMessage {
	items, given := o.Array(name)
	switch {
	case !given || len(items) == 0:
		o.Fail(name, "is required and must hold at least one message")
	case len(items) > turn.MostMessages:
		o.Fail(name, "holds %d messages; at most %d are read. Begin a new conversation, or leave older ones out",
			len(items), turn.MostMessages)
		return nil
	}
	return items
}

// mostStops bounds the texts looked for after every token; OpenAI allows 4.
const mostStops = 16

// Stops takes texts that end a reply: a string, or an array of strings.
func (o *Object) Stops(name string) []string {
	raw := o.Take(name)
	if raw == nil {
		return nil
	}
	elements := []json.RawMessage{raw}
	if raw[0] == '[' {
		elements = ReadArray(raw)
	}
	var stops []string
	for _, element := range elements {
		var stop *string
		if json.Unmarshal(element, &stop) != nil || stop == nil {
			o.Fail(name, "must be a string or an array of strings")
			return nil
		}
		if *stop == "" {
			o.Fail(name, "holds an empty text, which would end every reply at once")
		}
		stops = append(stops, *stop)
	}
	if len(stops) > mostStops {
		o.Fail(name, "has %d texts; at most %d are looked for", len(stops), mostStops)
	}
	return stops
}
