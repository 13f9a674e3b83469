package host

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"slipway/engine/memory"
)

func TestFollowUpsComputeWhatIsNew(t *testing.T) {
	k := startKept(t, nil)
	conversation := []message{user(k.document(1, 3600) + "\nWhat is it about?")}
	first := k.ask(conversation, nil)
	if first.prompt < 3600 {
		t.Fatalf("the document has %d tokens", first.prompt)
	}
	for _, question := range []string{"Which word comes first?", "And the last?", "Is there a lamp?",
		"Thank you. Name a number."} {
		conversation = append(conversation, first.message(), user(question))
		first = k.ask(conversation, nil)
		k.atMost(question, first, first.fresh+slack)
		if first.fresh > 60 {
			t.Errorf("%s: %d tokens are called new", question, first.fresh)
		}
	}
	again := k.ask(conversation, nil)
	k.atMost("regenerated", again, slack)
	if again.content != first.content {
		t.Errorf("regenerated %q, first %q", again.content, first.content)
	}
	edited := slices.Clone(conversation)
	edited[len(edited)-1] = user("Thank you. Name a colour of the rainbow instead.")
	a := k.ask(edited, nil)
	k.atMost("last message edited", a, k.tokens("Thank you. Name a colour of the rainbow instead.")+12+slack)
}

func TestThinkingThatTheTemplateDropsIsBoundedByTheTurnBefore(t *testing.T) {
	k := startKept(t, nil)
	on := message{"chat_template_kwargs": message{"enable_thinking": true}, "max_tokens": 40}
	conversation := []message{user(k.document(2, 600) + "\nWhat is it about?")}
	for _, question := range []string{"And then?", "Why?"} {
		a := k.ask(conversation, on)
		conversation = append(conversation, a.message(), user(question))
	}
	a := k.ask(conversation, on)
	k.atMost("thinking dropped", a, a.fresh+slack)
}

func TestSystemPromptIsSharedAndInterleavedConversationsKeepTheirs(t *testing.T) {
	k := startKept(t, nil)
	rules := system(k.document(3, 900))
	k.ask([]message{rules, user("Hello, I am the first.")}, nil)
	for i := range 10 {
		a := k.ask([]message{rules, user(fmt.Sprintf("Number %d greets you.", i))}, nil)
		k.atMost(fmt.Sprintf("conversation %d", i), a, a.fresh+slack)
	}
	one, two := []message{rules, user("First talk.")}, []message{user(k.document(4, 300))}
	for i := range 4 {
		a, b := k.ask(one, nil), k.ask(two, nil)
		if i > 0 {
			k.atMost("first conversation", a, a.fresh+slack)
			k.atMost("second conversation", b, b.fresh+slack)
		}
		one = append(one, a.message(), user(fmt.Sprintf("More of the first, %d.", i)))
		two = append(two, b.message(), user(fmt.Sprintf("More of the second, %d.", i)))
	}
}

func TestEarlyEditComputesFromTheLastPeriodBeforeIt(t *testing.T) {
	k := startKept(t, nil)
	head, tail := k.document(5, 2000), k.document(6, 1600)
	conversation := func(value int) []message {
		return []message{user(fmt.Sprintf("%sThe pass key is %d.\n%sWhat is the pass key?", head, value, tail))}
	}
	k.ask(conversation(58213), nil)
	a := k.ask(conversation(94027), nil)
	k.atMost("early edit", a, a.fresh+512+slack)
	fresh := startKept(t, func(s *Settings) { s.CacheMemoryBytes = 0 })
	if want := fresh.ask(conversation(94027), nil); want.content != a.content {
		t.Errorf("after the edit %q is answered, a fresh server says %q", a.content, want.content)
	}
}

func TestReplyCutIntoOtherTokensIsFoundFromItsText(t *testing.T) {
	k := startKept(t, nil)
	k.script = func(i int) []int32 {
		return slices.Concat(k.letterByLetter(
			fmt.Sprintf("The harbour lies behind bridge %d, and the river is silver.\n", i)), k.special("<|im_end|>"))
	}
	conversation := []message{user(k.document(14, 300) + "\nWhere is it?")}
	for i := range 4 {
		a := k.ask(conversation, message{"max_tokens": 100})
		if i > 0 {
			k.atMost(fmt.Sprintf("turn %d", i), a, a.fresh+slack)
			if a.fresh > 25 {
				t.Errorf("turn %d: %d tokens are called new", i, a.fresh)
			}
		}
		conversation = append(conversation, a.message(), user("And then?")) // trimmed
	}
}

func TestStopTextLeavesTheReplyContinuable(t *testing.T) {
	k := startKept(t, nil)
	conversation := []message{user(k.document(10, 400) + "\nCount to nine.")}
	whole := k.ask(conversation, message{"max_tokens": 30, "logit_bias": k.noEnd()})
	runes := []rune(strings.TrimSpace(whole.content))
	if len(runes) < 12 {
		t.Fatalf("Pocket answers %q, too short to cut", whole.content)
	}
	stop := string(runes[len(runes)/2 : len(runes)/2+4])
	cut := k.ask(conversation, message{"max_tokens": 30, "stop": stop, "logit_bias": k.noEnd()})
	if strings.Contains(cut.content, stop) {
		t.Fatal("the stop text is in the reply")
	}
	next := k.ask(append(conversation, cut.message(), user("And on?")), nil)
	k.atMost("after a stop text", next, next.fresh+slack)
}

func TestFloodOfOneOffPromptsLeavesTheConversation(t *testing.T) {
	var budget memory.Budget
	k := startKeptAfter(t, func(s *Settings) { s.WindowTokens = 2048 }, func(h *Host, s *Settings) {
		n := h.network
		s.CacheMemoryBytes = int64(h.extraPages)*n.PageBytes() + 3*n.PointBytes() + n.PointBytes()/2
		budget = cacheBudget(n.Network, s.CacheMemoryBytes, h.extraPages)
	})
	conversation := []message{user(k.document(12, 700) + "\nWhat is it about?")}
	for range 2 {
		a := k.ask(conversation, message{"max_tokens": 8})
		conversation = append(conversation, a.message(), user("Go on."))
	}
	flood := 100
	if os.Getenv("SLIPWAY_SOAK") != "" {
		flood = 500
	}
	for i := range flood {
		k.ask([]message{user(fmt.Sprintf("One-off %d: what is %d plus %d?", i, i*7, i*3))}, message{"max_tokens": 1})
		if u := k.host.keeper.Usage(memory.InMemory); u.OwnBytes > budget.OwnBytes || u.Pages > budget.Pages {
			t.Fatalf("%+v of %+v", u, budget)
		}
	}
	a := k.ask(conversation, message{"max_tokens": 8})
	k.atMost("after the flood", a, a.fresh+slack) // the newest turn is restored, not an older one
}

// A client, or its user, may change a reply before sending it back. The state inside a reply is not kept, so that
// everything from the turn before it on is computed, and nothing else.
func TestReplyChangedInItsMiddleIsBoundedByTheTurnBefore(t *testing.T) {
	k := startKept(t, nil)
	more := message{"max_tokens": 60, "logit_bias": k.noEnd()}
	conversation := []message{user(k.document(17, 500) + "\nWhat is it about?")}
	turns := []int{} // where each reply's turn began
	for i := range 3 {
		a := k.ask(conversation, more)
		turns = append(turns, a.prompt-k.header())
		conversation = append(conversation, a.message(), user(fmt.Sprintf("Question %d?", i)))
	}
	for i, turn := range turns {
		edited := slices.Clone(conversation[:2*i+3])
		words := strings.Fields(edited[2*i+1]["content"].(string))
		if len(words) < 4 {
			t.Fatalf("the reply %q has no middle", words)
		}
		words[len(words)/2] = "instead"
		edited[2*i+1] = message{"role": "assistant", "content": strings.Join(words, " ")}
		a := k.ask(edited, more)
		k.atMost(fmt.Sprintf("reply %d changed", i+1), a, a.prompt-turn+slack)
	}
}
