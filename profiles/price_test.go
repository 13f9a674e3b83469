package profiles

import (
	"strings"
	"testing"
)

// What is approximated depends on the format that the server keeps, not on the one that was wished for.
func TestSentenceIsOfTheFormatThatIsKept(t *testing.T) {
	for _, c := range []struct {
		profile      string
		kv           KVFormat
		says, silent string
	}{
		{"exact", F16, "Profile exact: full quality.", "here"},
		{"balanced", F32, "full quality here (keys and values are stored as f32)", "8 bit"},
		{"balanced", Q8, "approximates: keys and values at 8 bit: small", "4 bit"},
		{"balanced", Q4, "approximates: keys and values at 4 bit: small", "8 bit"},
		{"long", F16, "approximates: prefill sees the first 8,192", "8 bit"},
	} {
		p, ok := ByID(c.profile)
		if got := p.Price(c.kv); !ok || !strings.Contains(got, c.says) || strings.Contains(got, c.silent) {
			t.Errorf("%s in %s: %s", c.profile, c.kv, got)
		}
	}
	for _, p := range All() {
		said := 0
		for _, a := range p.Approximations {
			if strings.HasPrefix(a, aboutKV) {
				said++
			}
		}
		if p.KV.Format.Approximate() && said != 1 {
			t.Errorf("%s names its keys and values %d times", p.ID, said)
		}
	}
}
