package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"slipway/engine/device"
	"slipway/wire"
)

// Device is a device whose kernel files can be refused one by one.
type Device interface {
	device.Device
	// Refuse replaces a kernel file by its plain variant from now on. False when it has none, or was refused before.
	Refuse(file string, reason error) bool
}

// Operations are what a server tests before it loads a model: every kernel file at ragged shapes, and the widest rows
// of the 27B.
func Operations() []Operation { return append(Few(), Largest27B()...) }

// All is the complete test of a machine: Operations, both sides of each block edge, and whole matrices of real models.
func All() []Operation { return slices.Concat(Operations(), TileShapes(), Whole()) }

// Run runs the operations in order. The error is the context's, between two operations; failures of the device are in
// the report.
func Run(ctx context.Context, d Device, reference device.Device, operations []Operation) (r wire.KernelReport,
	err error) {
	began := time.Now()
	r = wire.KernelReport{Device: d.Name(), Passed: true}
	defer func() { r.Numerics, r.Seconds = d.Numerics(), time.Since(began).Seconds() }()
	for i, o := range operations {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		result := one(d, reference, o, uint64(i))
		r.Passed = r.Passed && result.Failure == ""
		r.Results = append(r.Results, result)
	}
	return r, nil
}

// one refuses the operation's files, the most likely cause first, until the result is correct.
func one(d Device, reference device.Device, o Operation, seed uint64) wire.KernelResult {
	if wide, ok := d.(interface{ BF16() bool }); ok && wide.BF16() && slices.Contains(o.Files, "linear_gemm") {
		o.Tolerance *= bf16Times
	}
	r := wire.KernelResult{Operation: o.Name, Files: o.Files, Tolerance: o.Tolerance}
	worst, what, err := check(d, reference, o, seed)
	var form interface{ UnusableFile() string }
	if errors.As(err, &form) {
		r.Unusable = form.UnusableFile()
		return r
	}
	r.Difference, r.Failure, r.Tolerance = worst, what, o.toleranceOn(d)
	for _, file := range o.Files {
		if r.Failure == "" {
			break
		}
		if d.Refuse(file, errors.New("in the self-test, "+o.Name+": "+r.Failure)) {
			r.Refused = append(r.Refused, file)
			r.Difference, r.Failure = Check(d, reference, o, seed)
			r.Tolerance = o.toleranceOn(d)
		}
	}
	return r
}

// Check runs an operation on both devices and returns the largest difference and, when it is beyond the tolerance, a
// sentence.
func Check(d, reference device.Device, o Operation, seed uint64) (worst float64, what string) {
	worst, what, _ = check(d, reference, o, seed)
	return worst, what
}

// check is Check with the error whose sentence it may be.
func check(d, reference device.Device, o Operation, seed uint64) (worst float64, what string, err error) {
	o.Tolerance = o.toleranceOn(d)
	got, want := NewWorld(d, seed), NewWorld(reference, seed)
	defer got.Release()
	defer want.Release()
	if worst, what, err = Compare(got, want, o); err != nil {
		what = strings.TrimSpace(err.Error())
	}
	return worst, what, err
}

// toleranceOn is the tolerance with the files that a device still uses: where attention_decode is refused,
// attention_flash takes its rows, whose queries and weights are f16 as a prefill's.
func (o Operation) toleranceOn(d device.Device) float64 {
	if left, ok := d.(interface{ Refused(file string) bool }); ok && slices.Contains(o.Files, "attention_decode") &&
		left.Refused("attention_decode") && !left.Refused("attention_flash") {
		return max(o.Tolerance, halved)
	}
	return o.Tolerance
}

// Compare is Check in worlds of the caller, of the same seed: the device's and the reference's. The error is of a
// device.
func Compare(got, want *World, o Operation) (worst float64, what string, err error) {
	a, err := o.Do(got)
	if err != nil {
		return 0, "", err
	}
	want.sampled, want.given = true, &got.stored
	b, err := o.Do(want)
	if err != nil {
		return 0, "", fmt.Errorf("the reference: %w", err)
	}
	worst, what = Differ(a, b, o.Tolerance)
	if want.unlike != "" {
		what = want.unlike
	}
	return worst, what, nil
}

// WriteTable writes the report for people.
func WriteTable(w io.Writer, r wire.KernelReport) error {
	width := 0
	for _, x := range r.Results {
		width = max(width, utf8.RuneCountInString(x.Operation))
	}
	for _, x := range r.Results {
		state := "ok"
		switch {
		case x.Failure != "":
			state = "WRONG: " + x.Failure
		case x.Unusable != "":
			state = "not here: only " + x.Unusable + " does this, which cannot be used"
		case len(x.Refused) > 0:
			state = "ok with the plain variant of " + strings.Join(x.Refused, ", ")
		}
		if _, err := fmt.Fprintf(w, "%-*s %8.1e of %7.1e  %s\n", width, x.Operation, x.Difference, x.Tolerance,
			state); err != nil {
			return err
		}
	}
	return nil
}
