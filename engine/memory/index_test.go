package memory

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var exact = Key{Model: "m", Revision: "r", KVFormat: "f32", Policy: Policy{Name: "exact"}, Device: "cpu",
	Numerics: "cpu-f32-1"}

func unbounded() Budget {
	return Budget{OwnBytes: math.MaxInt64, Pages: math.MaxInt, TotalBytes: math.MaxInt64, PageBytes: 100}
}

// naive is a list of points that is searched whole.
type naive []naivePoint

type naivePoint struct {
	key    Key
	prefix []int32
	tail   []int32
	point  *Point
}

func (n naive) usable(key Key, prompt []int32, most int) int {
	best := 0
	for _, p := range n {
		if p.key != key || len(p.prefix) > most || !slices.Equal(p.prefix, prompt[:len(p.prefix)]) {
			continue
		}
		reach := len(p.prefix)
		for i, id := range p.tail {
			if reach == most || prompt[len(p.prefix)+i] != id {
				break
			}
			reach++
		}
		if !p.point.In(InMemory) && reach < len(p.prefix)+len(p.tail) {
			continue // on disk it lies as it was at its reach
		}
		best = max(best, reach)
	}
	return best
}

// Random points over a small alphabet, so that prefixes meet, part and nest at every place; after every step the index
// says of random prompts what a search of the whole list says, and no bound is passed.
func TestIndexAgreesWithASearchOfEverything(t *testing.T) {
	otherPolicy := exact
	otherPolicy.Policy = Policy{Name: "sink-window", Sink: 64, Window: 128}
	otherNumbers := otherPolicy
	otherNumbers.Policy.Window = 256
	keys := []Key{exact, otherPolicy, otherNumbers}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		memory := Budget{OwnBytes: 1500, Pages: 30, TotalBytes: 4000, PageBytes: 100}
		disk := Budget{OwnBytes: math.MaxInt64, Pages: math.MaxInt, TotalBytes: 3000, PageBytes: 100}
		x := NewIndex(exact, memory, disk, 200)
		var list naive
		var pinned []*Point
		random := func(n int) []int32 {
			ids := make([]int32, n)
			for i := range ids {
				ids[i] = int32(r.IntN(2 + int(seed%3)))
			}
			return ids
		}
		prompt := func() []int32 {
			if len(list) > 0 && r.IntN(3) > 0 {
				p := list[r.IntN(len(list))]
				cut := r.IntN(len(p.prefix) + 1)
				return append(slices.Clone(append(slices.Clone(p.prefix), p.tail...)[:cut]), random(1+r.IntN(20))...)
			}
			return random(1 + r.IntN(40))
		}
		leave := func(gone []Gone) {
			for _, gone := range gone {
				g := gone.Point
				if slices.Contains(pinned, g) {
					t.Fatal("a pinned point was evicted")
				}
				if !g.In(InMemory) && !g.In(OnDisk) {
					list = slices.DeleteFunc(list, func(p naivePoint) bool { return p.point == g })
				}
			}
		}
		for range 300 {
			key := keys[r.IntN(len(keys))]
			switch r.IntN(6) {
			case 0, 1:
				ids, tail := prompt(), random(r.IntN(6))
				tier := Tier(r.IntN(2))
				cost := Cost{Bytes: int64(10 + r.IntN(400))}
				for range r.IntN(6) {
					if page := PageID(r.IntN(60)); !slices.Contains(cost.Pages, page) {
						cost.Pages = append(cost.Pages, page)
					}
				}
				gone, ok := x.Room(tier, cost, ClaimNew)
				leave(gone)
				if !ok {
					continue
				}
				var from *Point
				if len(list) > 0 && r.IntN(2) == 0 {
					from = list[r.IntN(len(list))].point
				}
				p := x.Add(key, ids, tail, []Kind{KindSystem, KindTurn, KindReply, KindPeriodic}[r.IntN(4)],
					x.Open(from), tier, cost)
				if !slices.Equal(p.Prefix(), ids) {
					t.Fatalf("a point after %v says it is after %v", ids, p.Prefix())
				}
				list = append(list, naivePoint{key, ids, tail, p})
			case 2:
				learnt := prompt()
				x.Learn(key, learnt)
				if x.tokens > x.pointTokens()+x.historyTokens+len(learnt) {
					t.Fatalf("%d ids are remembered", x.tokens)
				}
			case 3:
				if len(list) > 0 && len(pinned) < 3 {
					p := list[r.IntN(len(list))].point
					x.Pin(p)
					pinned = append(pinned, p)
				} else if len(pinned) > 0 {
					x.Unpin(pinned[0])
					pinned = pinned[1:]
				}
			case 4:
				for _, gone := range x.Tidy(key, prompt(), 4) {
					leave(gone)
				}
			}
			ids := prompt()
			most := r.IntN(len(ids) + 1)
			m := x.Find(key, ids, most, true)
			if want := list.usable(key, ids, most); m.Usable != want {
				t.Fatalf("seed %d: %d tokens are usable, the index says %d", seed, want, m.Usable)
			}
			if e := x.Explain(key, ids, m.Usable, most); e.Cached+e.Again+e.New != len(ids) || e.Again < 0 ||
				e.New < 0 {
				t.Fatalf("cached %d + again %d + new %d is not %d", e.Cached, e.Again, e.New, len(ids))
			}
			for tier, b := range []Budget{memory, disk} {
				u := x.Usage(Tier(tier))
				if u.OwnBytes > b.OwnBytes || u.Pages > b.Pages || u.TotalBytes > b.TotalBytes {
					t.Fatalf("tier %d holds %+v of %+v", tier, u, b)
				}
			}
		}
	}
}

func ids(from, n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(from + i)
	}
	return out
}

func TestTapeServesEveryLengthThatItCovers(t *testing.T) {
	x := NewIndex(exact, unbounded(), unbounded(), 1000)
	whole := ids(0, 120)
	p := x.Add(exact, whole[:50], whole[50:100], KindCancelled, x.Open(nil), InMemory, Cost{Bytes: 1})
	for _, c := range []struct {
		name       string
		prompt     []int32
		most, want int
	}{
		{"before the base", append(slices.Clone(whole[:49]), 999), 50, 0},
		{"at the base", append(slices.Clone(whole[:50]), 999), 51, 50},
		{"inside the tape", append(slices.Clone(whole[:77]), 999, 999), 79, 77},
		{"past the tape", whole, 120, 100},
		{"bound inside the tape", whole, 60, 60},
		{"bound before the base", whole, 49, 0},
	} {
		if m := x.Find(exact, c.prompt, c.most, true); m.Usable != c.want || (m.Point == p) != (c.want > 0) {
			t.Errorf("%s: %d tokens, wanted %d", c.name, m.Usable, c.want)
		}
	}
}

func TestKeyThatDiffersInOnePartIsNotUsedAndIsNamed(t *testing.T) {
	prompt := ids(0, 100)
	for name, change := range map[string]func(*Key){
		"revision":       func(k *Key) { k.Revision = "s" },
		"quantisation":   func(k *Key) { k.Quantization = "8 bit" },
		"KV format":      func(k *Key) { k.KVFormat = "bf16" },
		"prefill policy": func(k *Key) { k.Policy.ColdTail = 1 },
		"device":         func(k *Key) { k.Device = "metal" },
		"numerics":       func(k *Key) { k.Numerics = "2" },
		"model":          func(k *Key) { k.Model = "n" },
	} {
		x := NewIndex(exact, unbounded(), unbounded(), 1000)
		other := exact
		change(&other)
		x.Add(other, prompt[:90], nil, KindTurn, x.Open(nil), InMemory, Cost{})
		if m := x.Find(exact, prompt, 99, true); m.Point != nil {
			t.Errorf("%s: a foreign point was used", name)
		}
		e := x.Explain(exact, prompt, 0, 99)
		if e.Cause != CauseOtherKey || len(e.Keys) != 1 || e.Keys[0][:len(name)] != name {
			t.Errorf("%s: explained as %q %v", name, e.Cause, e.Keys)
		}
		if exact.Digest() == other.Digest() {
			t.Errorf("%s: equal digests", name)
		}
	}
}

func TestForeignDraftSectionLeavesThePointGood(t *testing.T) {
	have := []Section{{"mtp", "rev 1"}}
	for _, c := range []struct {
		wanted Section
		state  SectionState
	}{{Section{"mtp", "rev 1"}, SectionGood}, {Section{"mtp", "rev 2"}, SectionForeign},
		{Section{"ring", "rev 1"}, SectionMissing}} {
		if got := FindSection(have, c.wanted); got != c.state {
			t.Errorf("%v: %d, wanted %d", c.wanted, got, c.state)
		}
	}
	if MTPShared(0) != 0 || MTPShared(10) != 9 {
		t.Error("slot P-1 depends on the token that follows, and is not shared")
	}
}

func TestDifferenceShowsBothSides(t *testing.T) {
	x := NewIndex(exact, unbounded(), unbounded(), 1000)
	old := ids(0, 100)
	x.Open(nil)
	x.Learn(exact, old)
	prompt := slices.Clone(old)
	prompt[60] = 999
	e := x.Explain(exact, prompt, 0, 99)
	if e.Common != 60 || e.Again != 60 || e.New != 40 || e.Cause != CauseNoPoint || e.Difference == nil {
		t.Fatalf("%+v", e)
	}
	if p := e.Difference; p.At != 60 || p.Old[0] != 60 || p.New[0] != 999 || p.Before[len(p.Before)-1] != 59 {
		t.Fatalf("%+v", p)
	}
	if e := x.Explain(exact, append(slices.Clone(old), 5, 6, 7), 0, 102); e.Difference != nil {
		t.Fatal("a prompt that merely continues has a difference")
	}
}

func TestEvictedPointIsNamedAsTheCause(t *testing.T) {
	x := NewIndex(exact, unbounded(), unbounded(), 1000)
	prompt := ids(0, 100)
	c := x.Open(nil)
	x.Learn(exact, prompt)
	p := x.Add(exact, prompt[:80], nil, KindTurn, c, InMemory, Cost{})
	x.Release(p, InMemory, LostEvicted)
	if e := x.Explain(exact, prompt, 0, 99); e.Cause != CauseEvicted {
		t.Fatalf("explained as %q", e.Cause)
	}
	x.Lose(exact, prompt[:90], LostDamaged)
	if e := x.Explain(exact, prompt, 80, 99); e.Cause != CauseDamaged {
		t.Fatalf("explained as %q", e.Cause)
	}
}

// 100 conversations of 100,000 tokens with 100 points each, which share a system prompt.
func BenchmarkFindAmongTenThousandPoints(b *testing.B) {
	x := NewIndex(exact, unbounded(), unbounded(), 1000)
	const length = 100_000
	var prompts [][]int32
	for i := range 100 {
		prompt := ids(0, length)
		for j := 1000; j < length; j++ {
			prompt[j] += int32(i * length)
		}
		c := x.Open(nil)
		for j := range 100 {
			x.Add(exact, prompt[:(j+1)*length/100], nil, KindTurn, c, InMemory, Cost{Bytes: 1})
		}
		prompts = append(prompts, prompt)
	}
	for i := 0; b.Loop(); i++ {
		if m := x.Find(exact, prompts[i%100], length-1, true); m.Usable != length/100*99 {
			b.Fatal(m.Usable)
		}
	}
}
