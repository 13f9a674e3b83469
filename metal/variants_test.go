//go:build unix

package metal_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"slipway/engine/device"
	"slipway/metal"
	"slipway/metal/cpurun"
	"slipway/metal/fake"
	"slipway/metal/kernels"
	"slipway/metal/selftest"
)

// without are options with kernel files that do not compile.
func without(files ...string) metal.Options {
	return metal.Options{Source: func(name string) string {
		text := kernels.Source(name)
		if slices.Contains(files, name) {
			text += "\nthis is no kernel\n"
		}
		return text
	}}
}

func TestBrokenPlainKernelThatNothingNeedsIsIgnored(t *testing.T) {
	whole := open(t, fake.Configuration{Seed: 4}, metal.Options{}).Numerics()
	for file, says := range map[string]string{
		"rms_norm_plain": "nothing needs it", "gated_norm_plain": "nothing needs it",
		"attention_input_plain": "nothing needs it",
		"linear_plain":          "only models with weights in 2, 3, 5 or 6 bit", "delta_step_plain": "only models " +
			"with recurrent keys", "top_k_plain": "only models with more logits", "attention_plain": "only models " +
			"with attention heads",
	} {
		t.Run(file, func(t *testing.T) {
			d := open(t, fake.Configuration{Seed: 4}, without(file))
			report, err := selftest.Run(context.Background(), d, reference(), selftest.Few())
			if err != nil || !report.Passed || report.Numerics != whole {
				t.Fatalf("%v, %+v", err, report)
			}
			for _, r := range report.Results {
				if len(r.Refused) > 0 || r.Unusable != "" && r.Unusable != file {
					t.Errorf("%+v", r)
				}
			}
			if list := d.Degraded(); len(list) != 1 || !strings.HasPrefix(list[0], file+" cannot be used here") ||
				!strings.Contains(list[0], "); "+says) || !strings.HasSuffix(list[0], " need it") &&
				!strings.HasPrefix(says, "nothing") {
				t.Errorf("named: %q", list)
			}
		})
	}
}

// Codes of 5 bits are multiplied by linear_plain alone.
func TestMissingKernelRefusesOnlyModelsThatNeedIt(t *testing.T) {
	d := open(t, fake.Configuration{Seed: 4}, without("linear_plain"))
	five := selftest.Affine(33, 64, 5, 32, device.FormatF16)
	w := newWorld(t, d, 1)
	for _, rows := range []int{3, 12} {
		x, dst, m := w.Buffer(rows, 64), w.Output(rows, 33), w.Matrix(five)
		err := w.Pass(selftest.Stateless(rows), func(p device.Pass) {
			p.Linear(x, []device.Product{{W: m, Dst: dst}}, rows)
		})
		var form *device.FormError
		if !errors.As(err, &form) || form.File != "linear_plain" || strings.Contains(err.Error(), "\n)") {
			t.Errorf("%d rows: %v, wanted a FormError of linear_plain", rows, err)
		}
	}
	report, err := selftest.Run(context.Background(), d, reference(), selftest.Few())
	if err != nil || !report.Passed {
		t.Fatalf("%v, %+v", err, report)
	}
	n := 0
	for _, r := range report.Results {
		if r.Unusable == "linear_plain" {
			n++
		}
	}
	var table strings.Builder
	if err := selftest.WriteTable(&table, report); n != 1 || err != nil ||
		!strings.Contains(table.String(), "not here: only linear_plain does this") {
		t.Errorf("%d operations without a kernel, %v:\n%s", n, err, table.String())
	}
	if !d.Refuse("linear_gemv", errors.New("wrong")) {
		t.Fatal("linear_gemv is not refused")
	}
	if report, err = selftest.Run(context.Background(), d, reference(), selftest.Few()); err != nil || report.Passed {
		t.Errorf("%v: products that no kernel is left for pass", err)
	}
}

func TestDegradedNamesAWorkingReplacement(t *testing.T) {
	for _, c := range []struct {
		broken []string
		does   string // for the first
	}{
		{[]string{"attention_decode"}, "attention_flash"},
		{[]string{"attention_decode_q8", "attention_decode"}, "attention_flash"},
		{[]string{"attention_decode_q8", "attention_decode", "attention_flash"}, "attention_plain"},
		{[]string{"delta_chunk", "delta_step"}, "delta_step_plain"},
	} {
		t.Run(strings.Join(c.broken, " "), func(t *testing.T) {
			d := open(t, fake.Configuration{Seed: 4}, without(c.broken...))
			list := d.Degraded()
			at := slices.IndexFunc(list, func(s string) bool { return strings.HasPrefix(s, c.broken[0]+" cannot") })
			if len(list) != len(c.broken) || at < 0 || !strings.HasSuffix(list[at], "); "+c.does+" replaces it") ||
				strings.Contains(list[at], "\n)") {
				t.Fatalf("named: %q", list)
			}
			report, err := selftest.Run(context.Background(), d, reference(), selftest.Few())
			if err != nil || !report.Passed || len(d.Degraded()) != len(c.broken) {
				t.Errorf("%v, passed %v, degraded %q: a correct kernel is refused", err, report.Passed, d.Degraded())
			}
			d.Used()
			for i, o := range about(c.broken[0]) {
				if what := check(o, d, uint64(i)); what != "" {
					t.Errorf("%s: %s", o.Name, what)
				}
			}
			if ran := d.Used(); !slices.ContainsFunc(ran, func(k string) bool { return strings.HasPrefix(k, c.does) }) {
				t.Errorf("ran: %q", ran)
			}
		})
	}
}

func TestFastKernelWithoutReplacementIsAnError(t *testing.T) {
	cpurun.Need(t)
	libraries, err := fake.Open(fake.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range [][]string{{"rms_norm", "rms_norm_plain"}, {"delta_step", "delta_step_plain"},
		{"attention_decode", "attention_flash", "attention_plain"}} {
		opt := without(broken...)
		opt.Libraries = libraries
		_, err := metal.New(opt)
		var refused *metal.KernelError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), broken[len(broken)-1]) ||
			strings.HasSuffix(err.Error(), ".") || strings.Contains(err.Error(), "\n;") ||
			!strings.Contains(err.Error(), broken[0]) {
			t.Errorf("%q: %v, wanted a KernelError that names them", broken, err)
		}
	}
	opt := without("rms_norm_plain")
	opt.Libraries, opt.Plain = libraries, true
	if _, err := metal.New(opt); err == nil {
		t.Error("a device without its plain kernel is used in plain mode")
	}
}
