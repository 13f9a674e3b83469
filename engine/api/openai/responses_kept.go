package openai

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/engine/text"
)

const (
	mostKept      = 64
	mostKeptBytes = 64 << 20
)

// kept are the latest responses, in memory alone, for clients that go on from one by its id: at most 64, of 64 MiB
// together.
type kept struct {
	mu      sync.Mutex
	entries []*keptResponse // oldest first
	bytes   int
}

type keptResponse struct {
	response     response
	conversation []text.Message // that it ends, itself included; not to be changed
	bytes        int
}

// newResponseID gives an id that nobody can guess: it is all that a client needs to read a conversation.
func newResponseID() string {
	var b [16]byte
	rand.Read(b[:])
	return "resp_" + hex.EncodeToString(b[:])
}

// add keeps a response, and drops the oldest for it. One that is larger than all may be is not kept.
func (k *kept) add(r response, conversation []text.Message) {
	e := &keptResponse{response: r, conversation: conversation, bytes: len(r.echo.Tools)}
	for _, i := range r.Output {
		e.bytes += len(i.Name) + 256
		if i.Arguments != nil {
			e.bytes += len(*i.Arguments)
		}
		if i.Content != nil {
			for _, p := range *i.Content {
				e.bytes += len(p.Text)
			}
		}
	}
	for _, m := range conversation {
		e.bytes += len(m.Content) + 256
		if m.ReasoningContent != nil {
			e.bytes += len(*m.ReasoningContent)
		}
		for _, c := range m.ToolCalls {
			e.bytes += len(c.Name) + len(c.Arguments) + 128
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if e.bytes > mostKeptBytes {
		return
	}
	k.entries = append(k.entries, e)
	k.bytes += e.bytes
	for len(k.entries) > mostKept || k.bytes > mostKeptBytes {
		k.bytes -= k.entries[0].bytes
		k.entries = slices.Delete(k.entries, 0, 1)
	}
}

// find gives a response; param names the member that has its id.
func (k *kept) find(param, id string) (*keptResponse, *turn.Error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.entries {
		if e.response.ID == id {
			return e, nil
		}
	}
	return nil, gone(param, "response", id)
}

func gone(param, what, id string) *turn.Error {
	return &turn.Error{Kind: turn.NotFound, Code: "not_found", Param: param,
		Sentence: fmt.Sprintf("the %s %.60q is not here: the latest %d responses are kept, until the server is "+
			"restarted or reloaded. Send the whole conversation as input", what, id, mostKept)}
}

func (k *kept) conversation(id string) ([]text.Message, *turn.Error) {
	e, err := k.find("previous_response_id", id)
	if err != nil {
		return nil, err
	}
	return slices.Clone(e.conversation), nil
}

// item gives an item of a kept response.
func (k *kept) item(param, id string) (json.RawMessage, *turn.Error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range slices.Backward(k.entries) {
		for _, item := range e.response.Output {
			if item.ID == id && id != "" {
				raw, err := json.Marshal(item)
				if err != nil {
					panic(err) // ours
				}
				return raw, nil
			}
		}
	}
	return nil, gone(param, "item", id)
}

func (k *kept) remove(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.entries = slices.DeleteFunc(k.entries, func(e *keptResponse) bool {
		if e.response.ID == id {
			k.bytes -= e.bytes
		}
		return e.response.ID == id
	})
}

// Forget drops all responses.
func (w *Wire) Forget() {
	w.kept.mu.Lock()
	defer w.kept.mu.Unlock()
	w.kept.entries, w.kept.bytes = nil, 0
}

const responsePath = "/v1/responses/"

func (w *Wire) keptResponse(rec *web.Record, r *http.Request) *turn.Error {
	e, err := w.kept.find("", strings.TrimPrefix(r.URL.Path, responsePath))
	if err != nil {
		return err
	}
	web.SendJSON(rec, http.StatusOK, e.response)
	return nil
}

func (w *Wire) removeResponse(rec *web.Record, r *http.Request) *turn.Error {
	id := strings.TrimPrefix(r.URL.Path, responsePath)
	if _, err := w.kept.find("", id); err != nil {
		return err
	}
	w.kept.remove(id)
	web.SendJSON(rec, http.StatusOK, map[string]any{"id": id, "object": "response", "deleted": true})
	return nil
}
