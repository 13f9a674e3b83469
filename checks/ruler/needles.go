package ruler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"slipway/checks/filler"
)

// multikey1 hides four keys in filler and asks for one.
func multikey1(r *rand.Rand, units, _, _ int) made {
	next := filler.Shuffled(r)
	var lines []string
	for range units {
		lines = append(lines, filler.Lines()[next()])
	}
	keys, values := newKeys(r, 4, pair), newKeys(r, 4, sevenDigits)
	for i, at := range sortedSample(r, len(lines)+1, 4) {
		lines = slices.Insert(lines, at, needleLine("numbers", keys[i], values[i]))
	}
	ask := r.IntN(4)
	return niah(strings.Join(lines, " "), "number", keys[ask], values[ask])
}

// multikey2 hides one among others of its kind.
func multikey2(r *rand.Rand, units, _, _ int) made {
	return among(r, units, "numbers", "number", pair, sevenDigits)
}

// multikey3 is that with random identifiers.
func multikey3(r *rand.Rand, units, _, _ int) made {
	return among(r, units, "uuids", "uuid", uuid, uuid)
}

func among(r *rand.Rand, units int, many, one string, key, value func(*rand.Rand) string) made {
	keys := newKeys(r, units, key)
	var lines []string
	var wanted string
	ask := r.IntN(units)
	for i, k := range keys {
		v := value(r)
		if i == ask {
			wanted = v
		}
		lines = append(lines, needleLine(many, k, v))
	}
	return niah(strings.Join(lines, "\n"), one, keys[ask], wanted)
}

func niah(context, one, key, value string) made {
	return made{filled(niahOne, "type_needle_v", one, "context", context, "query", key), []string{value}}
}

func needleLine(many, key, value string) string {
	return filled(niahNeedle, "type_needle_v", many, "key", key, "value", value)
}

// newKeys are n different ones.
func newKeys(r *rand.Rand, n int, of func(*rand.Rand) string) []string {
	seen := map[string]bool{}
	var keys []string
	for len(keys) < n {
		if k := of(r); !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	return keys
}

// sortedSample are k places of n, the last first, so that an insertion moves none of the others.
func sortedSample(r *rand.Rand, n, k int) []int {
	places := r.Perm(n)[:min(k, n)]
	slices.Sort(places)
	slices.Reverse(places)
	return places
}

func pair(r *rand.Rand) string { return word(r) + "-" + word(r) }

func sevenDigits(r *rand.Rand) string { return fmt.Sprint(1000000 + r.IntN(9000000)) }

func uuid(r *rand.Rand) string {
	a, b := r.Uint64(), r.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000,
		b&0xffffffffffff)
}
