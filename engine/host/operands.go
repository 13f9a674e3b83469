package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"slipway/engine/device"
	"slipway/engine/model"
	"slipway/engine/pass"
	"slipway/engine/text"
)

// checkOperands refuses operands that no device has, and any on a device that does not convert them.
func (s Settings) checkOperands() error {
	switch operands := s.Operands; {
	case operands == "auto":
		return nil
	case s.Accelerator == nil || !slices.Contains(s.Accelerator.OperandFormats(), operands):
		return refuse("--operands %s: there are auto, f16 and bf16", operands)
	case s.deviceName() == "cpu":
		return refuse("--operands %s: the CPU multiplies in f32; leave --operands out, or answer on a GPU with "+
			"--device metal", operands)
	}
	return nil
}

// tryPrompt is long enough to use the kernels of prefill.
const tryPrompt = "Read the code that follows, say in one sentence what it does, and name the line that you would " +
	"change first."

// tryPrefill runs a short prompt on the GPU, to find activations beyond the range of its operands before a request
// does.
func (h *Host) tryPrefill(n *model.Network) error {
	if h.gpu == nil {
		return nil
	}
	prompt, err := h.text.Template.Render(
		text.Conversation{Messages: []text.Message{{Role: "user", Content: tryPrompt}}, AddGenerationPrompt: true})
	ids := h.text.Tokenizer.EncodePrompt(prompt)
	if err != nil { // a template that needs more than a question
		ids = h.text.Tokenizer.Encode(tryPrompt, text.EncodeOptions{})
	}
	s, err := n.NewSequence()
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = n.Forward(context.Background(), []pass.Segment{
		{Seq: s, Tokens: ids[:min(len(ids), n.WindowTokens(), n.ChunkTokens())]}})
	return explainPass(err)
}

// beyondF16 tells an error that bf16 operands would have avoided.
func beyondF16(err error) bool {
	var beyond *device.RangeError
	return errors.As(err, &beyond) && !beyond.BF16
}

// explainPass adds what to do to the error of a value out of range, and of a form that no kernel here supports.
func explainPass(err error) error {
	var beyond *device.RangeError
	var form *device.FormError
	switch {
	case errors.As(err, &form):
		other := ""
		if form.Matrix {
			other = ", or take a model whose weights are in 4 or 8 bit"
		}
		return fmt.Errorf("%w; the GPU answers other models: start the server with --device cpu for this one%s", err,
			other)
	case beyondF16(err):
		return fmt.Errorf("%w: start the server with --operands bf16, which is less exact", err)
	case errors.As(err, &beyond):
		return fmt.Errorf("%w: no setting of Metal can keep it; start the server with --device cpu", err)
	}
	return err
}
