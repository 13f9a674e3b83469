package host

import (
	"errors"
	"strings"
	"testing"

	"slipway/engine/device"
)

func TestFormWithoutAKernelNamesTheNextStep(t *testing.T) {
	err := explainPass(&device.FormError{File: "linear_plain", Forms: "weights in 2, 3, 5 or 6 bit, or in rows of " +
		"odd lengths", Matrix: true, Err: errors.New("no kernel")})
	var form *device.FormError
	if !errors.As(err, &form) || !strings.Contains(err.Error(), "this model has weights in 2, 3, 5 or 6 bit, or in "+
		"rows of odd lengths: they go by linear_plain alone, which cannot be used here (no kernel); ") ||
		!strings.Contains(err.Error(), "--device cpu") {
		t.Error(err)
	}
	if err := explainPass(&device.FormError{File: "attention_plain", Err: errors.New("no kernel")}); strings.Contains(
		err.Error(), "4 or 8 bit") || !strings.Contains(err.Error(), "--device cpu") {
		t.Errorf("heads that no kernel takes: %v", err)
	}
}
