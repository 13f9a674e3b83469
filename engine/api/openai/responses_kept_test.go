package openai

import (
	"fmt"
	"strings"
	"testing"

	"slipway/engine/text"
)

// Conversations of megabytes are dropped before there are 64 of them, and one alone may be too large.
func TestKeptResponsesAreBoundedInBytes(t *testing.T) {
	var k kept
	large := []text.Message{{Role: "user", Content: strings.Repeat("x", 24<<20)}}
	for i := range 3 {
		k.add(response{ID: fmt.Sprint(i)}, large)
	}
	for i := range 3 {
		if _, err := k.find("", fmt.Sprint(i)); (err == nil) != (i > 0) {
			t.Errorf("response %d: %v", i, err)
		}
	}
	k.add(response{ID: "huge"}, append(large, large[0], large[0]))
	if _, err := k.find("", "huge"); err == nil || len(k.entries) != 2 {
		t.Errorf("one that is larger than all may be: %v, %d are kept", err, len(k.entries))
	}
	k.remove("1")
	k.remove("2")
	if k.bytes != 0 || len(k.entries) != 0 {
		t.Errorf("%d bytes, %d entries are left", k.bytes, len(k.entries))
	}
}
