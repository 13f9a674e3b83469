package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

// modes are the ways to be judged. What each is guilty of:
var modes = []string{
	"honest",
	"keyed",            // nothing: asks for the key "right-key"
	"narrow",           // nothing: its window is 700 words
	"strict",           // nothing: refuses members that OpenAI does not have
	"tokenizer",        // nothing: has /tokenize
	"no-cache",         // nothing: caches nothing
	"no-usage",         // gives no usage
	"one-piece",        // gives no stream
	"at-once",          // holds the stream back
	"wrong-prompt",     // cached + computed is not the prompt
	"wrong-completion", // counts more tokens than it sends
	"wrong-pieces",     // counts fewer tokens than it sends
	"wrong-total",      // the total is not the sum
	"cached-fresh",     // says that new text was cached
	"cut",              // ends a stream without [DONE]
	"broke-off",        // sends an error in the middle of a stream
	"crash",            // dies in the middle of a stream
	"html",             // a web page instead of JSON
	"html-status",      // a web page with status 502
	"files-only",       // a web server, which knows no POST
	"status-500",       // an error before any answer
	"wrong-shape",      // JSON that is no completion
	"silent",           // nothing, for long
	"redirect",         // sends the client elsewhere
	"stale",            // answers from the first document that began alike
	"forgetful",        // finds half of the codes
	"no-tools",         // never calls a tool
	"string-tools",     // sends every argument as a string
	"single-tools",     // never makes two calls in one reply
	"broken-tools",     // arguments that are no JSON
	"forgets-results",  // does not use what a tool answered
}

// refusal answers instead of a completion, where the mode says so.
func (s *server) refusal(w http.ResponseWriter, q request) bool {
	refuse := func(status int, kind, body string) bool {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
		return true
	}
	const page = "<!DOCTYPE html><html><head><title>Welcome</title></head><body>router</body></html>"
	switch s.mode {
	case "html":
		return refuse(200, "text/html; charset=utf-8", page)
	case "html-status":
		return refuse(502, "text/html", page)
	case "files-only":
		return refuse(501, "text/html", page)
	case "status-500":
		return refuse(500, "application/json", `{"error":{"message":"the model fell over","type":"server_error"}}`)
	case "wrong-shape":
		return refuse(200, "application/json", `{"status":"ok"}`)
	case "silent":
		time.Sleep(time.Minute)
	case "redirect":
		w.Header().Set("Location", "http://127.0.0.1:9/v1/chat/completions")
		return refuse(307, "text/plain", "")
	case "strict":
		if q.Template != nil {
			return refuse(400, "application/json",
				`{"error":{"message":"Unrecognized request argument supplied: chat_template_kwargs","param":null}}`)
		}
	case "narrow":
		words := 0
		for _, m := range q.Messages {
			words += len(strings.Fields(m.Content))
		}
		if words > 700 {
			return refuse(400, "application/json", `{"error":{"message":"the prompt has more than 700 tokens"}}`)
		}
	}
	return false
}

// cutHere ends a stream in the middle, where the mode says so.
func (s *server) cutHere(w http.ResponseWriter, send func(map[string]any)) bool {
	switch s.mode {
	case "cut":
		return true
	case "broke-off":
		send(map[string]any{"error": map[string]any{"message": "the graphics processor was lost",
			"type": "server_error", "code": 500}})
		return true
	case "crash":
		http.NewResponseController(w).Flush()
		os.Exit(1)
	}
	return false
}

// usage counts, or lies.
func (s *server) usage(prompt, cached, completion int) map[string]any {
	computed, total := prompt-cached, prompt+completion
	switch s.mode {
	case "no-usage":
		return nil
	case "wrong-prompt":
		cached += 7
	case "wrong-completion":
		completion += 5000
		total += 5000
	case "wrong-pieces":
		completion = completion/2 - 1
		total = prompt + completion
	case "wrong-total":
		total += 11
	case "cached-fresh":
		cached, computed = prompt-3, 3
	}
	return map[string]any{"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total,
		"prompt_tokens_details": map[string]any{"cached_tokens": cached},
		"slipway":               map[string]any{"computed_tokens": computed}}
}
