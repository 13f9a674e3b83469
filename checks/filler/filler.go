// Package filler is the product's own text to hide things in: plain sentences, one a line, without a digit, of this
// project's own making.
package filler

import (
	_ "embed"
	"math/rand/v2"
	"strings"
)

//go:embed filler.txt
var text string

var lines = strings.Split(strings.TrimSpace(text), "\n")

// Lines are all sentences. The slice is shared: do not change it.
func Lines() []string { return lines }

// Text is the first n sentences, one a line.
func Text(n int) string { return strings.Join(lines[:min(n, len(lines))], "\n") }

// Shuffled is an endless order of the sentences: all of them in a random order, then again in another.
func Shuffled(r *rand.Rand) func() (index int) {
	var order []int
	return func() int {
		if len(order) == 0 {
			order = r.Perm(len(lines))
		}
		next := order[0]
		order = order[1:]
		return next
	}
}
