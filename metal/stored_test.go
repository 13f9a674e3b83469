//go:build unix

package metal_test

import (
	"strings"
	"testing"

	"slipway/metal"
	"slipway/metal/fake"
	"slipway/metal/kernels"
	"slipway/metal/selftest"
)

// Attention is compared over the contents of the device's pages. So these contents are compared on their own, number by
// number, code by code.
func TestWrongStoredValueIsReported(t *testing.T) {
	f16, q8 := about("attention_flash")[0], about("attention_decode_q8")[0]
	const lastKeep = "  if (query) return;\n"
	for _, c := range []struct {
		o                    selftest.Operation
		name, from, to, says string
	}{
		{f16, "f16 values a thousandth too large", "y[n] = v[i];", "y[n] = v[i] * 1.001f;", "values of position"},
		{f16, "f16 keys two thousandths too large", lastKeep, lastKeep + "for (uint n = 0; n < d / 32; n++) y[n] " +
			"*= 1.002f;\n", "keys of position"},
		{q8, "values four thousandths too large", "y[n] = v[i];", "y[n] = v[i] * 1.004f;", "values of position"},
		{q8, "keys a thousandth too large", lastKeep, lastKeep + "for (uint n = 0; n < d / 32; n++) y[n] *= 1.001f;\n",
			"groups of keys have other codes"},
		{q8, "keys a hundredth too large", lastKeep, lastKeep + "for (uint n = 0; n < d / 32; n++) y[n] *= 1.01f;\n",
			"keys of position"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := kernels.Source("attention_input")
			if strings.Count(text, c.from) != 1 {
				t.Fatalf("attention_input has %d of %q", strings.Count(text, c.from), c.from)
			}
			d := open(t, fake.Configuration{Seed: 4}, metal.Options{
				Source: with("attention_input", strings.Replace(text, c.from, c.to, 1))})
			if what := check(c.o, d, 1); !strings.Contains(what, c.says) {
				t.Errorf("says %q, wanted %q", what, c.says)
			}
		})
	}
}
