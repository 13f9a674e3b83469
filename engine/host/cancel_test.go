package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/engine/serve"
)

// leave streams a request and goes away after so many deltas, 0 meaning before any; it returns the content that
// arrived.
func (k *kept) leave(messages []message, deltas int, patience time.Duration) string {
	k.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if deltas == 0 {
		time.AfterFunc(patience, cancel)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, k.URL+"/v1/chat/completions",
		bytes.NewReader(body(messages, message{"stream": true, "max_tokens": 400, "logit_bias": k.noEnd()})))
	if err != nil {
		k.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	var content strings.Builder
	decoder := newEvents(response.Body)
	for got := 0; ; {
		piece, ok := decoder()
		if !ok {
			break
		}
		content.WriteString(piece)
		if piece != "" {
			if got++; got == deltas {
				break
			}
		}
	}
	cancel()
	k.idle()
	return content.String()
}

func newEvents(r io.Reader) func() (string, bool) {
	buffer := make([]byte, 1)
	line := ""
	return func() (string, bool) {
		for {
			n, err := r.Read(buffer)
			if n == 0 && err != nil {
				return "", false
			}
			if buffer[0] != '\n' {
				line += string(buffer[:n])
				continue
			}
			data, is := strings.CutPrefix(line, "data: ")
			line = ""
			var c struct {
				Choices []struct{ Delta struct{ Content string } }
			}
			if is && json.Unmarshal([]byte(data), &c) == nil && len(c.Choices) == 1 {
				return c.Choices[0].Delta.Content, true
			}
		}
	}
}

func TestCancelledReplyIsResumedWithAndWithoutItsPart(t *testing.T) {
	for _, streamed := range []int{1, 17, 90} { // 90 is past the tape
		t.Run(fmt.Sprintf("after %d pieces", streamed), func(t *testing.T) {
			k := startKept(t, nil)
			k.pace = 4 * time.Millisecond
			conversation := []message{user(k.document(7, 500) + "\nTell a long story.")}
			part := k.leave(conversation, streamed, 0)
			if len(part) < streamed {
				t.Fatalf("%q arrived", part)
			}
			with := k.ask(append(slices.Clone(conversation), message{"role": "assistant", "content": part},
				user("Go on.")), nil)
			k.atMost("with the part that arrived", with, with.fresh+slack)
			if with.fresh > 40 {
				t.Errorf("with the part that arrived %d tokens are called new", with.fresh)
			}
			without := k.ask(append(slices.Clone(conversation), user("Something shorter.")), nil)
			k.atMost("without it", without, without.fresh+slack)
			again := k.ask(conversation, nil)
			k.atMost("asked again", again, slack)
		})
	}
}

// leaveDuringPrefill asks and leaves once so many tokens of the prompt are dealt with. It returns how the request
// ended.
func (k *kept) leaveDuringPrefill(messages []message, dealtWith int) serve.Record {
	k.t.Helper()
	_, before := k.engine.Ledger().Records(0)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, k.URL+"/v1/chat/completions",
		bytes.NewReader(body(messages, message{"stream": true, "max_tokens": 400, "logit_bias": k.noEnd()})))
	if err != nil {
		k.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if response, err := http.DefaultClient.Do(r); err == nil {
			io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
	}()
	for left := false; ; time.Sleep(time.Millisecond) {
		records, _ := k.engine.Ledger().Records(before)
		if len(records) != 1 {
			continue
		}
		last := records[0]
		switch {
		case last.Reason != "":
			<-gone
			return last
		case !left && last.Usage.PromptTokens() >= dealtWith:
			left = true
			cancel()
		}
	}
}

func TestRetryOfALongPromptComputesWhatWasNotYetPrefilledAndOneChunk(t *testing.T) {
	k := startKept(t, nil)
	conversation := []message{user(k.document(8, 7000) + "\nWhat is it about?")}
	chunk, done := k.host.network.ChunkTokens(), 0
	for _, more := range []int{1, chunk, 3 * chunk} {
		left := k.leaveDuringPrefill(conversation, done+more)
		if left.Reason != serve.FinishCancelled || left.Usage.CompletionTokens > 0 {
			t.Fatalf("the client did not leave during prefill: %+v", left)
		}
		if again := left.Length - left.Usage.CachedTokens; again > left.Length-done+chunk {
			t.Errorf("%d of %d tokens were dealt with, and a retry begins at %d", done, left.Length,
				left.Usage.CachedTokens)
		}
		done = left.Usage.PromptTokens()
	}
	a := k.ask(conversation, nil)
	if done < 4*chunk || done >= a.prompt {
		t.Fatalf("%d of %d tokens were dealt with before", done, a.prompt)
	}
	k.atMost(fmt.Sprintf("after %d tokens", done), a, a.prompt-done+chunk)
}
