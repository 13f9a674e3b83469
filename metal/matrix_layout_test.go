//go:build unix

package metal_test

import (
	"math"
	"strings"
	"testing"

	"slipway/metal"
	"slipway/metal/fake"
	"slipway/metal/kernels"
)

// attention_decode_q8 assumes that the two elements of a lane are neighbours in a row. Here they are one below the
// other.
func TestMatrixOfAnotherLayoutGivesNaN(t *testing.T) {
	const file, numbered = "attention_decode_q8", "float(thread_index);"
	text := kernels.Source(file)
	if strings.Count(text, numbered) != 1 {
		t.Fatalf("%s has %d of %q", file, strings.Count(text, numbered), numbered)
	}
	d := open(t, fake.Configuration{Seed: 4}, metal.Options{
		Source: with(file, strings.Replace(text, numbered, "float(thread_index % 8 * 8 + thread_index / 8);", 1))})
	rows, err := about(file)[0].Do(newWorld(t, d, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		for _, x := range row {
			if math.IsNaN(float64(x)) {
				return
			}
		}
	}
	t.Error("the result is finite: the wrong layout was not noticed")
}
