package ruler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// hops of the one chain, as RULER's vt has them.
const hops = 4

// variableTracking hides a chain of assignments between copies of the noise and asks for every variable of its value.
func variableTracking(r *rand.Rand, units, shots, _ int) made {
	example := ""
	if shots > 0 {
		text, names, value := chain(r, 5, 3)
		example = text + filled(vtPrefix, "num_v", fmt.Sprint(hops+1), "query", value) + strings.Join(names, " ") +
			"\n\n"
	}
	text, names, _ := chain(r, units, 5)
	return made{example + text, names}
}

// chain is a question with its variables, of so many letters, and their value.
func chain(r *rand.Rand, units, letters int) (text string, names []string, value string) {
	names = newKeys(r, hops+1, func(r *rand.Rand) string { return upper(r, letters) })
	value = fmt.Sprint(10000 + r.IntN(89999))
	lines := []string{}
	for range units {
		lines = append(lines, noise)
	}
	links := []string{"VAR " + names[0] + " = " + value}
	for i := range hops {
		links = append(links, "VAR "+names[i+1]+" = VAR "+names[i])
	}
	places := sortedSample(r, units, len(links))
	for i, at := range places {
		lines = slices.Insert(lines, at, links[len(links)-1-i])
	}
	return filled(vtTemplate, "context", strings.Join(lines, "\n"), "query", value), names, value
}

func upper(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('A' + r.IntN(26))
	}
	return string(b)
}
