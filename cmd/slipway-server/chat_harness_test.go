package main

import "encoding/json"

type message = map[string]any

func user(text string) message { return message{"role": "user", "content": text} }

func body(messages []message, more message) []byte {
	all := message{"model": "pocket", "messages": messages, "max_tokens": 24, "chat_template_kwargs": message{
		"enable_thinking": false}}
	for name, value := range more {
		all[name] = value
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return raw
}

// slack is what a follow-up may cost beyond what is new.
const slack = 16
