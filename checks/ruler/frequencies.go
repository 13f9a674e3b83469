package ruler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// commonWords lists words by number; ten of them occur 30 times, the others 3 times (below 4,096 tokens: 6 and 1).
func commonWords(r *rand.Rand, units, shots, tokens int) made {
	common, uncommon, example := 30, 3, [3]int{40, 10, 3}
	if tokens < 4096 {
		common, uncommon, example = 6, 1, [3]int{20, 3, 1}
	}
	front := ""
	if shots > 0 {
		text, want := numbered(r, example[0], example[1], example[2])
		front = text + cwePrefix + " " + numberedList(want) + "\n"
	}
	text, want := numbered(r, units, common, uncommon)
	return made{front + text, want}
}

func numbered(r *rand.Rand, words, common, uncommon int) (text string, want []string) {
	list := newKeys(r, max(words, 20), word)
	want = list[:10]
	var all []string
	for i, w := range list {
		times := uncommon
		if i < 10 {
			times = common
		}
		for range times {
			all = append(all, w)
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return filled(cweTemplate, "context", numberedList(all)), want
}

func numberedList(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d. %s", i+1, w)
	}
	return b.String()
}

// zeta2 is the sum of 1/k² to infinity.
const zeta2 = math.Pi * math.Pi / 6

// frequentWords is a text of coded words whose frequencies fall with the square of their rank; the most frequent is
// dots.
func frequentWords(r *rand.Rand, units, _, tokens int) made {
	vocabulary := newKeys(r, max(tokens/50, 8), func(r *rand.Rand) string { return strings.ToLower(upper(r, 6)) })
	vocabulary[0] = "..."
	var all []string
	for rank, w := range vocabulary {
		for range int(float64(units) / zeta2 / float64((rank+1)*(rank+1))) {
			all = append(all, w)
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return made{filled(fweTemplate, "context", strings.Join(all, " ")), vocabulary[1:4]}
}
