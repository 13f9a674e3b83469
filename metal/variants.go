//go:build unix

package metal

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"slipway/engine/device"
	"slipway/metal/mtl"
)

// variant is a kernel with its function constants: what a pipeline is made of.
type variant struct {
	library, name string
	constants     [6]uint32
	count         int // of constants
	threads       int // of a threadgroup, at most
}

// plainOf maps each kernel file that may fail to the file that replaces it. The other files have no other variant.
var plainOf = map[string]string{
	"rms_norm": "rms_norm_plain", "linear_gemv": "linear_plain", "linear_rows": "linear_gemv",
	"linear_gemm": "linear_plain",
	"delta_step":  "delta_step_plain", "delta_chunk": "delta_step", "attention_decode_q8": "attention_decode",
	"gated_norm": "gated_norm_plain", "top_k": "top_k_plain", "attention_input": "attention_input_plain",
	"attention_flash": "attention_plain", "attention_decode": "attention_flash",
}

// formsOf are the forms that only a plain kernel supports, by its file. The other plain files only replace fast ones.
var formsOf = map[string]string{
	"linear_plain": "weights in 2, 3, 5 or 6 bit, or in rows of odd lengths", "attention_plain": "attention heads " +
		"of other sizes than 64, 128 and 256",
	"delta_step_plain": "recurrent keys of other sizes than 32, 64 and 128", "top_k_plain": "more logits than " +
		"top_k takes",
}

// isPlain reports whether a file replaces others and has no replacement itself.
func isPlain(file string) bool {
	for _, plain := range plainOf {
		if plain == file {
			return plainOf[file] == ""
		}
	}
	return false
}

// replacement is the first usable replacement of a file that cannot be used; empty when there is none.
func (d *Device) replacement(file string) string {
	for file = plainOf[file]; file != "" && d.refused[file] != nil; {
		file = plainOf[file]
	}
	return file
}

// uncovered is why the device cannot be used: the first kernel file that cannot be used and has no usable replacement.
// A plain file is not needed as long as each fast file that it replaces can be used.
func (d *Device) uncovered() error {
	for _, file := range slices.Sorted(maps.Keys(d.refused)) {
		switch {
		case isPlain(file) && !d.opt.Plain || plainOf[file] != "" && d.opt.Plain:
		case plainOf[file] == "":
			return &KernelError{file, d.refused[file]}
		case d.replacement(file) == "":
			last := file
			for plainOf[last] != "" {
				last = plainOf[last]
			}
			return &KernelError{file, fmt.Errorf("%w; its replacement %s cannot be used either: %v", d.refused[file],
				last, d.refused[last])}
		}
	}
	return nil
}

// trimmed is an error as part of a sentence: without the full stop and the newline at the end of a compiler's message.
type trimmed struct{ error }

func (e trimmed) Error() string { return strings.TrimSuffix(strings.TrimSpace(e.error.Error()), ".") }
func (e trimmed) Unwrap() error { return e.error }

// fast reports whether a kernel file is used instead of its plain variant.
func (d *Device) fast(library string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.opt.Plain && d.refused[library] == nil
}

// Refuse replaces a fast kernel file by its plain variant, for the reason that a self-test found. False when there is
// no other variant, or the file was not in use.
func (d *Device) Refuse(file string, reason error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if plainOf[file] == "" || d.refused[file] != nil || d.opt.Plain {
		return false
	}
	d.refuse(file, reason)
	return true
}

// Refused reports whether a kernel file cannot be used here.
func (d *Device) Refused(file string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refused[file] != nil
}

// refuse records that a library cannot be used.
func (d *Device) refuse(library string, err error) {
	if d.refused[library] == nil {
		d.refused[library] = trimmed{err}
		d.order = append(d.order, library)
	}
}

// Degraded names, in sentences, the kernel files that cannot be used, why, and what replaces them.
func (d *Device) Degraded() (sentences []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, file := range d.order {
		then := "nothing replaces it"
		if plain := d.replacement(file); plain != "" {
			then = plain + " replaces it"
		} else if isPlain(file) && d.uncovered() == nil {
			then = "nothing needs it, as its fast kernels work"
			if forms := formsOf[file]; forms != "" {
				then = "only models with " + forms + " need it"
			}
		}
		sentences = append(sentences, fmt.Sprintf("%s cannot be used here (%v); %s", file, d.refused[file], then))
	}
	return sentences
}

// pipeline returns the pipeline of v, made at its first use. An error also refuses the library, if another can do its
// work.
func (d *Device) pipeline(v variant) (*mtl.Pipeline, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.pipelines[v]; p != nil {
		return p, nil
	}
	p, err := d.makePipeline(v)
	if err != nil {
		if plainOf[v.library] != "" || isPlain(v.library) {
			d.refuse(v.library, err)
		}
		if isPlain(v.library) && d.uncovered() == nil {
			return nil, &device.FormError{File: v.library, Forms: formsOf[v.library],
				Matrix: v.library == "linear_plain", Err: trimmed{err}}
		}
		return nil, &KernelError{v.name, trimmed{err}}
	}
	d.pipelines[v] = p
	return p, nil
}

func (d *Device) makePipeline(v variant) (*mtl.Pipeline, error) {
	l := d.libraries[v.library]
	if l == nil {
		return nil, d.refused[v.library]
	}
	p, err := l.NewPipeline(v.name, append([]uint32(nil), v.constants[:v.count]...))
	if err != nil {
		return nil, err
	}
	if p.MaxThreads < v.threads {
		p.Release()
		return nil, fmt.Errorf("takes %d threads in a threadgroup here, not %d", p.MaxThreads, v.threads)
	}
	return p, nil
}
