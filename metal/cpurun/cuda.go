package cpurun

import (
	"fmt"
	"hash/fnv"
	"sort"
	"strings"
)

// Mark names a source in a file name: the fake Metal over CUDA finds what was built of a text by it.
func Mark(text string) string {
	h := fnv.New64a()
	h.Write([]byte(text))
	return fmt.Sprintf("%016x", h.Sum64())
}

// CUDA is the source as clang compiles it for an NVIDIA GPU, over another metal_stdlib: an entry mslk_KERNEL a kernel,
// with one argument, the 31 pointers by buffer index. Function constants become variables mslc_INDEX that the host
// sets; where values is not nil they are what it says, and the compiler may use it.
func (s *Source) CUDA(name string, values map[int]uint32) (string, error) {
	body := reLocal.ReplaceAllString(blank(s.Text), "${1}MSL_SHARED $2 $3$4;")
	for _, c := range s.Constants {
		of := fmt.Sprintf("extern \"C\" { MSL_CONSTANT %s mslc_%d; }", c.Type, c.Index)
		if values != nil {
			v, ok := values[c.Index]
			if !ok {
				return "", fmt.Errorf("%s: no value for function constant %d", name, c.Index)
			}
			of = fmt.Sprintf("static constexpr %s mslc_%d = %d;", c.Type, c.Index, v)
		}
		at := reConstant.FindStringIndex(body)
		body = body[:at[0]] + of + body[at[1]:]
	}
	body = reHostName.ReplaceAllString(body, "")
	var b strings.Builder
	b.WriteString("#include <metal_stdlib>\n")
	for _, c := range s.Constants {
		fmt.Fprintf(&b, "#define %s mslc_%d\n", c.Name, c.Index)
	}
	fmt.Fprintf(&b, "#line 1 %q\n%s\n#pragma clang force_cuda_host_device end\n#line 1 \"wrappers\"\n", name, body)
	kernels := append([]Kernel(nil), s.Kernels...)
	sort.Slice(kernels, func(i, j int) bool { return kernels[i].Name < kernels[j].Name })
	for _, k := range kernels {
		if err := k.entry(&b); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// entry is the global function of a kernel.
func (k Kernel) entry(b *strings.Builder) error {
	fmt.Fprintf(b, "extern \"C\" MSL_ENTRY void mslk_%s(const msl_arguments arguments) { void *const *a = "+
		"arguments.at; const msl_tid here, *t = &here; (void)a; (void)t; ", k.Name)
	err := k.writeCall(b)
	b.WriteString(" }\n")
	return err
}
