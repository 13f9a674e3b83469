package turn

import (
	"crypto/rand"
	"encoding/hex"
	"strings"

	"slipway/engine/memory"
	"slipway/engine/text"
)

// The id of a tool call names the prompt that it answered, so that a client that sends the call back finds its
// reply again whatever the client left out of the turn: "call_" and 24 hex digits, of which 16 begin the hash of
// that prompt, 6 are random, and the last 2 count the calls of a reply. It is a hint alone: what it leads to is
// compared.

const callPrefixBytes = 8

// callIDs gives ids for the calls of the reply to a prompt.
func (s *Service) callIDs(prompt []int32, replyAt int) func(index int) string {
	if s.opt.Keeper == nil || replyAt == 0 {
		return func(int) string { return NewID("call_") }
	}
	hash := memory.HashPrefix(prompt[:replyAt])
	var b [12]byte
	copy(b[:], hash[:callPrefixBytes])
	rand.Read(b[callPrefixBytes:11])
	return func(index int) string {
		b[11] = byte(index)
		return "call_" + hex.EncodeToString(b[:])
	}
}

// repliesOf gives the remembered replies that a call's id can be of, the latest first.
func (s *Service) repliesOf(id string) []*memory.Reply {
	raw, err := hex.DecodeString(strings.TrimPrefix(id, "call_"))
	if err != nil || len(raw) != 12 {
		return nil
	}
	return s.opt.Keeper.Replies().Beginning(raw[:callPrefixBytes])
}

// restoreThinking puts the thinking back that a client left out of a turn whose calls bear our ids and our
// arguments: clients that keep no thinking would make the model forget, at each step of a tool loop, why it made
// the call, and everything after it would be computed again. Whether it becomes part of the prompt is the
// template's decision, as if it had been sent.
func (s *Service) restoreThinking(c *text.Conversation) {
	if s.opt.Keeper == nil {
		return
	}
	reader := s.turnReader(c.Tools)
	for i := range c.Messages {
		m := &c.Messages[i]
		if m.Role != "assistant" || len(m.ToolCalls) == 0 || m.ReasoningContent != nil {
			continue
		}
		returned := reader.of(*m)
		for _, reply := range s.repliesOf(m.ToolCalls[0].ID) {
			streamed := reader.read(s.turns(nil).Text(reply.IDs))
			reasoning := streamed.reasoning
			streamed.reasoning = ""
			if reasoning != "" && returned.equal(streamed) {
				m.ReasoningContent = &reasoning
				break
			}
		}
	}
}
