package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"slipway/engine/model"
	"slipway/engine/pass"
	"slipway/engine/text"
	"slipway/metal"
)

// operandFormats are what --operands takes beside auto, the exact one first: the 16 bits in which Metal multiplies a prompt's activations.
var operandFormats = []string{"f16", "bf16"}

// checkOperands refuses operands that nobody has, and any on a device that does not convert them.
func checkOperands(device, operands string) error {
	switch {
	case operands == "auto":
		return nil
	case !slices.Contains(operandFormats, operands):
		return usage("--operands %s: there are auto, f16 and bf16", operands)
	case device == "cpu" || device == "auto" && !metalByItself:
		return usage("--operands %s: the CPU multiplies in f32; leave --operands out, or answer on a GPU with --device metal", operands)
	}
	return nil
}

// tryPrompt is long enough that the kernels of prefill multiply it.
const tryPrompt = "Read the code that follows, say in one sentence what it does, and name the line that you would change first."

// tryPrefill runs a short prompt on the GPU, so that activations beyond the range of its operands are met before a request has them.
func (l *loaded) tryPrefill(n *model.Network) error {
	if l.metal == nil {
		return nil
	}
	prompt, err := l.text.Template.Render(text.Conversation{Messages: []text.Message{{Role: "user", Content: tryPrompt}}, AddGenerationPrompt: true})
	ids := l.text.Tokenizer.EncodePrompt(prompt)
	if err != nil { // a template that wants more than a question
		ids = l.text.Tokenizer.Encode(tryPrompt, text.EncodeOptions{})
	}
	s, err := n.NewSequence()
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = n.Forward(context.Background(), []pass.Segment{{Seq: s, Tokens: ids[:min(len(ids), n.WindowTokens(), n.ChunkTokens())]}})
	return saidBeyond(err)
}

// beyondF16 tells an error that bf16 operands would have avoided.
func beyondF16(err error) bool {
	var beyond *metal.RangeError
	return errors.As(err, &beyond) && !beyond.BF16
}

// saidBeyond adds to a value out of range, and to a form that no kernel here takes, what to do.
func saidBeyond(err error) error {
	var beyond *metal.RangeError
	var form *metal.FormError
	switch {
	case errors.As(err, &form):
		other := ""
		if form.File == "linear_plain" {
			other = ", or take a model whose weights are in 4 or 8 bit"
		}
		return fmt.Errorf("%w; the GPU answers other models: start the server with --device cpu for this one%s", err, other)
	case beyondF16(err):
		return fmt.Errorf("%w: start the server with --operands bf16, which is less exact", err)
	case errors.As(err, &beyond):
		return fmt.Errorf("%w: no setting of Metal can keep it; start the server with --device cpu", err)
	}
	return err
}
