//go:build unix

package metal_test

import (
	"strings"
	"testing"

	"slipway/metal"
	"slipway/metal/fake"
	"slipway/metal/kernels"
)

// Attention of 8 bits is compared over the codes that the device stored; so the codes are compared on their own, one by one.
func TestCodesThatAreNotTheReferences(t *testing.T) {
	const lastKeep = "  if (query) return;\n"
	for _, c := range []struct{ name, from, to, says string }{
		{"values four thousandths too large", "y[n] = v[i];", "y[n] = v[i] * 1.004f;", "values of position"},
		{"keys a thousandth too large", lastKeep, lastKeep + "for (uint n = 0; n < d / 32; n++) y[n] *= 1.001f;\n", "groups of keys have other codes"},
		{"keys a hundredth too large", lastKeep, lastKeep + "for (uint n = 0; n < d / 32; n++) y[n] *= 1.01f;\n", "keys of position"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := kernels.Source("attention_input")
			if strings.Count(text, c.from) != 1 {
				t.Fatalf("attention_input has %d of %q", strings.Count(text, c.from), c.from)
			}
			d := open(t, fake.Configuration{Seed: 4}, metal.Options{Source: with("attention_input", strings.Replace(text, c.from, c.to, 1))})
			if what := check(about("attention_decode_q8")[0], d, 1); !strings.Contains(what, c.says) {
				t.Errorf("says %q, wanted %q", what, c.says)
			}
		})
	}
}
