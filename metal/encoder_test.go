//go:build unix

package metal

import (
	"testing"

	"slipway/metal/mtl"
)

// Which dispatch needs a barrier after one that read r and wrote w, and which does not.
func TestEncoderFindsEveryHazard(t *testing.T) {
	r, w, other := new(mtl.Buffer), new(mtl.Buffer), new(mtl.Buffer)
	for _, c := range []struct {
		name string
		use  use
		want bool
	}{
		{"read after read", use{b: r, access: read}, false},
		{"write after read", use{b: r, access: write}, true},
		{"read after write", use{b: w, access: read}, true},
		{"write after write", use{b: w, access: write}, true},
		{"constant", use{b: w, access: constant}, false},
		{"another buffer", use{b: other, access: write}, false},
	} {
		e := encoder{reads: []*mtl.Buffer{r}, writes: []*mtl.Buffer{w}}
		if e.conflicts([]use{{b: other, access: read}, c.use}) {
			t.Errorf("%s in the same phase: a barrier", c.name)
		}
		e.phase()
		if got := e.conflicts([]use{{b: other, access: read}, c.use}); got != c.want {
			t.Errorf("%s: barrier %v, wanted %v", c.name, got, c.want)
		}
		if e.forget(); e.conflicts([]use{c.use}) {
			t.Errorf("%s after a barrier: a second barrier", c.name)
		}
	}
}
