//go:build unix

package metal

import (
	"fmt"

	"slipway/metal/mtl"
)

// variant is a kernel with its function constants: what a pipeline is made of.
type variant struct {
	library, name string
	constants     [6]uint32
	count         int // of constants
	threads       int // of a threadgroup, at most
}

// plainOf maps the kernel files that may fail to the files that stand in for them. The others have no other variant.
var plainOf = map[string]string{
	"rms_norm": "rms_norm_plain", "linear_gemv": "linear_plain", "linear_gemm": "linear_plain", "delta_step": "delta_step_plain", "delta_chunk": "delta_step", "attention_decode_q8": "attention_decode",
	"gated_norm": "gated_norm_plain", "top_k": "top_k_plain", "attention_input": "attention_input_plain", "attention_flash": "attention_plain", "attention_decode": "attention_plain",
}

// fast tells whether a kernel file is to be used rather than its plain variant.
func (d *Device) fast(library string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.opt.Plain && d.refused[library] == nil
}

// Refuse gives a fast kernel file up for its plain variant, for the reason that a self-test found. False when there is no other
// variant, or none was in use.
func (d *Device) Refuse(file string, reason error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if plainOf[file] == "" || d.refused[file] != nil || d.opt.Plain {
		return false
	}
	d.refuse(file, reason)
	return true
}

// refuse remembers that a fast library cannot be used.
func (d *Device) refuse(library string, err error) {
	if d.refused[library] == nil {
		d.refused[library] = err
		d.degraded = append(d.degraded, fmt.Sprintf("%s cannot be used here (%v); %s stands in for it", library, err, plainOf[library]))
	}
}

// pipeline returns the pipeline of v, made at its first use. Of a fast library an error also refuses the library.
func (d *Device) pipeline(v variant) (*mtl.Pipeline, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.pipelines[v]; p != nil {
		return p, nil
	}
	p, err := d.makePipeline(v)
	if err != nil {
		if plainOf[v.library] != "" {
			d.refuse(v.library, err)
		}
		return nil, &KernelError{v.name, err}
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
