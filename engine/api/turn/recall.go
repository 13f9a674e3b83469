package turn

import (
	"encoding/json"

	"slipway/engine/memory"
	"slipway/engine/memory/keep"
	"slipway/engine/text"
)

// Clients send a conversation back as text. Tokenised again, it may differ from what was streamed: the model may
// have chosen other tokens for the same text, white space was trimmed, the arguments of a call were rewritten. So a
// turn that says what was streamed after the same prefix gets its streamed ids, and is found in the cache.

// recall puts streamed ids into a rendered conversation, and marks the places that later requests will share.
func (s *Service) recall(ids []int32, tools []json.RawMessage) ([]int32, keep.Marks) {
	if s.opt.Keeper == nil {
		return ids, keep.Marks{}
	}
	turns := s.turns(tools)
	ids, _ = turns.Recall(ids, s.opt.Keeper.Replies())
	marks := keep.Marks{Turns: turns.Headers(ids)}
	if last := len(marks.Turns) - 1; last >= 0 {
		marks.Reply = marks.Turns[last] + len(turns.Header)
		if last > 0 {
			marks.Said = turns.EndOf(ids, marks.Turns[last-1])
		}
	}
	user := memory.Turns{Header: s.special(s.opt.Text.Family.UserOpens)}.Headers(ids)
	if len(user) > 0 {
		marks.System = user[0]
	}
	return ids, marks
}

func (s *Service) turns(tools []json.RawMessage) memory.Turns {
	end, ok := s.opt.Text.Tokenizer.ID(s.opt.Text.Family.TurnEnds)
	if !ok {
		end = -1
	}
	reader := s.turnReader(tools)
	return memory.Turns{
		Header: s.special(s.opt.Text.Family.AssistantOpens), End: end,
		Bytes:  s.opt.Text.Tokenizer.TokenBytes,
		Encode: func(plain string) []int32 { return s.opt.Text.Tokenizer.Encode(plain, text.EncodeOptions{}) },
		Same: func(returned, streamed string) bool {
			return reader.read(returned).equal(reader.read(streamed))
		},
	}
}
