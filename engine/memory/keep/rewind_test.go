package keep

import (
	"slices"
	"testing"
)

// A reply whose tokens were drafted: each step processes some, and takes the rejected ones back before it reports the
// rest. Every point of it serves a follow-up that parts anywhere in it with the right state.
func TestRejectedTokensNeverBecomePartOfAPoint(t *testing.T) {
	for _, how := range []Ending{EndWhole, EndCut, EndCancelled} {
		w := newWorld(t, 20, 100, 0)
		prompt, reply := ids(1, 90), ids(2, 70)
		seq := &fakeSequence{n: w.net}
		v := w.keeper.Admit(prompt, Marks{}, seq)
		for done := 0; done < len(prompt); {
			n := v.Next(min(32, len(prompt)-done))
			seq.forward(prompt[done : done+n])
			v.Processed(prompt[done : done+n])
			done += n
		}
		for done := 0; done+3 <= len(reply); done += 3 {
			for _, id := range append(slices.Clone(reply[done:done+3]), 1000, 1001) { // two are rejected
				seq.forward([]int32{id})
			}
			v.Rewind(2)
			v.Processed(reply[done : done+3])
		}
		v.Rewind(1) // one that was reported: the reply ends before it
		processed := len(prompt) + len(reply)/3*3 - 1
		if seq.Len() != processed || len(v.now) != processed {
			t.Fatalf("the sequence holds %d tokens, %d are known, wanted %d", seq.Len(), len(v.now), processed)
		}
		v.End(how, reply[:processed-len(prompt)+1])
		for _, common := range []int{len(prompt), len(prompt) + 20, processed - 4, processed} {
			next := append(slices.Concat(prompt, reply)[:common:common], ids(3, 5)...)
			o := w.request(next, Marks{}, nil, EndWhole, -1) // checks the state that was restored
			if common == processed && o.cached != processed {
				t.Errorf("%d of %d tokens are restored after the whole reply", o.cached, processed)
			}
		}
	}
}

// ids are n ids that differ by seed.
func ids(seed, n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(seed*100 + i*i%97)
	}
	return out
}
