package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"slipway/engine/memory"
)

func TestConversationSurvivesRestart(t *testing.T) {
	dir := t.TempDir() + "/cache"
	withDisk := func(s *Settings) { s.CacheDisk = dir }
	k := startKept(t, withDisk)
	conversation := []message{user(k.document(11, 1500) + "\nWhat is it about?")}
	a := k.ask(conversation, nil)
	conversation = append(conversation, a.message(), user("And then?"))
	b := k.ask(conversation, nil)
	conversation = append(conversation, b.message(), user("Why?"))
	seen, prompts := k.seen, k.prompts
	k.stop()
	k = startKept(t, withDisk)
	k.seen, k.prompts = slices.Clone(seen), slices.Clone(prompts)
	c := k.ask(conversation, nil)
	k.atMost("after a restart", c, c.fresh+slack)
	if counters := k.host.keeper.Counters(); counters.FromDisk != 1 {
		t.Errorf("%d points came from disk", counters.FromDisk)
	}
	fresh := startKept(t, func(s *Settings) { s.CacheMemoryBytes = 0 })
	if want := fresh.ask(conversation, nil); want.content != c.content {
		t.Errorf("restored from disk %q is answered, a fresh server says %q", c.content, want.content)
	}
	k.stop()
	// Another revision's points are there, are not used, and are named.
	k = startKept(t, func(s *Settings) { withDisk(s); s.Revision = strings.Repeat("ab", 20) })
	d := k.ask(conversation, nil)
	reports := k.host.keeper.Reports()
	if last := reports[len(reports)-1]; d.computed != d.prompt || last.Cause != memory.CauseOtherKey ||
		len(last.Keys) != 1 || !strings.HasPrefix(last.Keys[0], "revision") {
		t.Errorf("under another revision %d of %d computed, explained as %q %v", d.computed, d.prompt, last.Cause,
			last.Keys)
	}
}

// What a short conversation saves is little, and still within the bound.
func TestShortConversationSurvivesRestart(t *testing.T) {
	dir := t.TempDir() + "/cache"
	withDisk := func(s *Settings) { s.CacheDisk = dir }
	k := startKept(t, withDisk)
	conversation := []message{user("Name a colour of the rainbow, and say why you like it.")}
	a := k.ask(conversation, message{"max_tokens": 4})
	conversation = append(conversation, a.message(), user("And then?"))
	seen, prompts := k.seen, k.prompts
	k.stop()
	k = startKept(t, withDisk)
	k.seen, k.prompts = slices.Clone(seen), slices.Clone(prompts)
	b := k.ask(conversation, nil)
	if b.prompt > 64 {
		t.Fatalf("%d tokens: no short conversation", b.prompt)
	}
	k.atMost("a short conversation after a restart", b, b.fresh+slack)
}

// A prompt whose client left, and an edit in the middle of a long one, find the periodic points of before.
func TestPeriodicPointsSurviveRestart(t *testing.T) {
	dir := t.TempDir() + "/cache"
	k := startKept(t, func(s *Settings) { s.CacheDisk = dir })
	restart := func() {
		seen, prompts := k.seen, k.prompts
		k.stop()
		k = startKept(t, func(s *Settings) { s.CacheDisk = dir })
		k.seen, k.prompts = slices.Clone(seen), slices.Clone(prompts)
	}
	retried := []message{user(k.document(13, 3000) + "\nWhat is it about?")}
	left := k.leaveDuringPrefill(retried, 1500)
	restart()
	again := k.ask(retried, nil)
	done := left.Usage.PromptTokens()
	k.atMost("a retry after a restart", again, again.prompt-done+k.host.network.ChunkTokens())

	head, tail := k.document(5, 2000), k.document(6, 1600)
	conversation := func(value int) []message {
		return []message{user(fmt.Sprintf("%sThe pass key is %d.\n%sWhat is the pass key?", head, value, tail))}
	}
	k.ask(conversation(58213), nil)
	restart()
	edited := k.ask(conversation(94027), nil)
	k.atMost("early edit after a restart", edited, edited.fresh+512+slack)
}

// The reply before the last message was not decoded here: its end is a place to go on from all the same.
func TestLastMessageEditedAfterAReplyFromElsewhereResumesAtTheReply(t *testing.T) {
	k := startKept(t, nil)
	history := []message{system("You are kind."), user("What is new?"),
		{"role": "assistant", "content": k.document(14, 300)}}
	k.ask(append(slices.Clone(history), user("And the lamp?")), message{"max_tokens": 4})
	a := k.ask(append(slices.Clone(history), user("No, the door, please.")), message{"max_tokens": 4})
	turn := k.tokens("<|im_end|>\n<|im_start|>user\nNo, the door, " +
		"please.<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n")
	k.atMost("the last message edited", a, turn+slack)
}
