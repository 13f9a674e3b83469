//go:build unix

package metal_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"slipway/metal"
	"slipway/metal/fake"
	"slipway/metal/kernels"
	"slipway/metal/selftest"
)

// wrong are errors as the compiler of another GPU might make them: the file compiles, and its results are wrong.
var wrong = []struct{ file, from, to string }{
	{"rms_norm", "float(p.cols) + p.eps", "float(p.cols + 1) + p.eps"},
	{"linear_gemv", "+ now.bias[o] * values", "- now.bias[o] * values"},
	{"linear_rows", "now.bias[i][s] + MIDDLE * scale", "now.bias[i][s] - MIDDLE * scale"},
	{"linear_rows", "place / 8 * 4 + place % 4", "place / 8 + place % 4 * 2"},
	{"delta_chunk", "betas[i] * sum", "betas[i] * sum * 1.01f"},
	{"attention_decode_q8", "total = total * scaled + (w0 + w1)", "total = total + (w0 + w1)"},
	{"linear_gemm", "high = BITS == 8 ? w[1] : low >> 16", "high = BITS == 8 ? w[0] : low >> 16"},
	{"delta_step", "s[i] += delta * (kv[i] * norm)", "s[i] += delta * kv[i]"},
	{"gated_norm", "* silu(z[at + i])", "* sigmoid(z[at + i])"},
	{"attention_input", "normed[i + p.pairs] * table[p.pairs + i]", "normed[i + p.pairs] * table[i]"},
	{"attention_flash", "total = total * factor + sum", "total = total + sum"},
	{"top_k", "heads[j].x == best ? heads[j].y", "heads[j].x >= best ? heads[j].x"},
	{"attention_decode", "total[h] = total[h] * factor", "total[h] = total[h] * 1.0f"},
	{"attention_decode", "p.window > 0 && t < p.dense_from", "false"},
	{"attention_decode_q8", "p.window > 0 && t < p.dense_from", "false"},
	{"rms_norm", "p.stride + p.column", "p.stride - p.column"},
	{"rms_norm", "float(p.cols) + p.eps", "float(p.cols) - p.eps"},
	{"gated_norm", "float(p.dim) + p.eps", "float(p.dim) - p.eps"},
	{"delta_step", "sums.y + 1e-6f", "sums.y - 1e-6f"},
	{"delta_step", "sums.x + 1e-6f", "sums.x - 1e-6f"},
	{"attention_input", "+ p.eps", "- p.eps"},
}

func TestWrongFastKernelIsReplacedBySelfTest(t *testing.T) {
	for _, c := range wrong {
		t.Run(c.file, func(t *testing.T) {
			text := kernels.Source(c.file)
			if !strings.Contains(text, c.from) {
				t.Fatalf("%s has no %q", c.file, c.from)
			}
			d := open(t, fake.Configuration{Seed: 4}, metal.Options{
				Source: with(c.file, strings.Replace(text, c.from, c.to, 1))})
			report, err := selftest.Run(context.Background(), d, reference(), selftest.Few())
			if err != nil || !report.Passed {
				t.Fatalf("%v, %+v", err, report)
			}
			var refused []string
			for _, r := range report.Results {
				refused = append(refused, r.Refused...)
			}
			if !slices.Contains(refused, c.file) || len(d.Degraded()) != len(refused) {
				t.Errorf("refused: %v; named: %q", refused, d.Degraded())
			}
		})
	}
}

func TestWrongPlainKernelFailsTheSelfTest(t *testing.T) {
	d := open(t, fake.Configuration{Seed: 4}, metal.Options{
		Source: with("swiglu", strings.Replace(kernels.Source("swiglu"), "silu(gate[i])", "sigmoid(gate[i])", 1))})
	report, err := selftest.Run(context.Background(), d, reference(), selftest.Few())
	if err != nil || report.Passed {
		t.Fatalf("%v, passed %v", err, report.Passed)
	}
	text, err := json.Marshal(report)
	if err != nil || !strings.Contains(string(text), `"passed":false`) || !strings.Contains(string(text), "wanted") {
		t.Errorf("%v: %s", err, text)
	}
	var table strings.Builder
	if err := selftest.WriteTable(&table, report); err != nil || !strings.Contains(table.String(), "WRONG") {
		t.Errorf("%v:\n%s", err, table.String())
	}
}

func TestCorrectDevicePassesTheSelfTest(t *testing.T) {
	d := open(t, fake.Configuration{Seed: 4, Threads: 2}, metal.Options{})
	report, err := selftest.Run(context.Background(), d, reference(),
		append(selftest.Operations(), selftest.Whole()...))
	if err != nil || !report.Passed || len(d.Degraded()) > 0 {
		t.Fatalf("%v, passed %v, degraded %v", err, report.Passed, d.Degraded())
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := selftest.Run(ctx, d, reference(), selftest.Few()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
