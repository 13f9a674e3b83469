package cpurun

import (
	"fmt"
	"regexp"
	"strings"
)

// Source is a parsed .metal text: its kernels, function constants and parameter structs.
type Source struct {
	Text      string
	Kernels   []Kernel
	Constants []Constant
	Structs   []Struct
}

// Kernel is an entry point, by the name that the host asks for.
type Kernel struct {
	Name string
	call string // function with template arguments
	args []argument
}

type argument struct{ decl, attribute string }

// Constant is a function constant: a value that the host sets when it makes a pipeline.
type Constant struct {
	Type, Name string
	Index      int
}

// Struct is a parameter struct: every field is four bytes, so that Go and Metal lay it out alike.
type Struct struct {
	Name   string
	Fields []Field
}

// Field is one field of a parameter struct.
type Field struct{ Type, Name string }

var (
	reComment  = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
	reLocal    = regexp.MustCompile(`(?m)^([ \t]+)threadgroup\s+([A-Za-z_]\w*)\s+(\w+)((?:\s*\[[^\]\n]+\])+)\s*;`)
	reInstance = regexp.MustCompile(
		`template\s*\[\[host_name\("([^"]+)"\)\]\]\s*kernel\s+void\s+(\w+)\s*<([^(]*)>\s*\(`)
	reKernel         = regexp.MustCompile(`\bkernel\s+void\s+(\w+)\s*\(`)
	reTemplate       = regexp.MustCompile(`template\s*<[^;{}]*>\s*$`)
	reInstancePrefix = regexp.MustCompile(`\[\[host_name\("[^"]+"\)\]\]\s*$`)
	reAttribute      = regexp.MustCompile(`\[\[([^\]]*)\]\]\s*$`)
	reConstant       = regexp.MustCompile(`(?m)^constant\s+(\w+)\s+(\w+)\s*\[\[function_constant\((\d+)\)\]\]\s*;`)
	reStruct         = regexp.MustCompile(`(?s)\bstruct\s+(\w+)\s*\{(.*?)\};`)
	reField          = regexp.MustCompile(`^\s*(\w+)\s+(\w+)\s*$`)
	reHostName       = regexp.MustCompile(`\[\[host_name\("[^"]+"\)\]\]`)
	reBuffer         = regexp.MustCompile(`^buffer\((\d+)\)$`)
)

// blank replaces comments by spaces, so that positions and lines stay.
func blank(text string) string {
	return reComment.ReplaceAllStringFunc(text, func(c string) string {
		return strings.Map(func(r rune) rune {
			if r == '\n' {
				return r
			}
			return ' '
		}, c)
	})
}

// Parse finds what the runner must know of a source. Errors name what it does not understand.
func Parse(text string) (*Source, error) {
	code := blank(text)
	s := &Source{Text: text}
	add := func(name, call string, at int) error {
		list, ok := parenthesised(code, at)
		if !ok {
			return fmt.Errorf("kernel %s: its parameter list does not end", name)
		}
		k := Kernel{Name: name, call: call}
		for _, a := range splitArguments(list) {
			m := reAttribute.FindStringSubmatchIndex(a)
			if m == nil {
				return fmt.Errorf("kernel %s: parameter %q has no attribute", name, strings.TrimSpace(a))
			}
			k.args = append(k.args, argument{strings.TrimSpace(a[:m[0]]), strings.TrimSpace(a[m[2]:m[3]])})
		}
		s.Kernels = append(s.Kernels, k)
		return nil
	}
	for _, m := range reInstance.FindAllStringSubmatchIndex(code, -1) {
		if err := add(code[m[2]:m[3]], code[m[4]:m[5]]+"<"+code[m[6]:m[7]]+">", m[1]); err != nil {
			return nil, err
		}
	}
	for _, m := range reKernel.FindAllStringSubmatchIndex(code, -1) {
		if reTemplate.MatchString(code[:m[0]]) || reInstancePrefix.MatchString(code[:m[0]]) {
			continue
		}
		if err := add(code[m[2]:m[3]], code[m[2]:m[3]], m[1]); err != nil {
			return nil, err
		}
	}
	for _, m := range reConstant.FindAllStringSubmatch(code, -1) {
		c := Constant{Type: m[1], Name: m[2]}
		fmt.Sscan(m[3], &c.Index)
		s.Constants = append(s.Constants, c)
	}
	for _, m := range reStruct.FindAllStringSubmatch(code, -1) {
		if !strings.HasSuffix(m[1], "Params") {
			continue
		}
		t := Struct{Name: m[1]}
		for _, f := range strings.Split(strings.TrimSpace(m[2]), ";") {
			if strings.TrimSpace(f) == "" {
				continue
			}
			n := reField.FindStringSubmatch(f)
			if n == nil || n[1] != "uint" && n[1] != "int" && n[1] != "float" {
				return nil, fmt.Errorf("struct %s: %q is not one uint, int or float", m[1], strings.TrimSpace(f))
			}
			t.Fields = append(t.Fields, Field{n[1], n[2]})
		}
		s.Structs = append(s.Structs, t)
	}
	return s, nil
}

// parenthesised returns the text up to the parenthesis that closes the one before at.
func parenthesised(code string, at int) (string, bool) {
	depth := 1
	for i := at; i < len(code); i++ {
		switch code[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return code[at:i], true
			}
		}
	}
	return "", false
}

func splitArguments(list string) (out []string) {
	depth, from := 0, 0
	for i, c := range list {
		switch c {
		case '(', '<', '[':
			depth++
		case ')', '>', ']':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, list[from:i])
				from = i + 1
			}
		}
	}
	return append(out, list[from:])
}

// cpp is the C++ that clang compiles: the source with what C++ refuses rewritten line by line, then a wrapper a kernel.
func (s *Source) cpp(name string) (string, error) {
	body := reLocal.ReplaceAllString(blank(s.Text),
		`${1}typedef $2 msl_t_$3$4; msl_t_$3 &$3 = *(msl_t_$3 *)msl_threadgroup_array("$3", sizeof(msl_t_$3));`)
	body = reConstant.ReplaceAllString(body, "static $1 $2;")
	body = reHostName.ReplaceAllString(body, "")
	var b strings.Builder
	fmt.Fprintf(&b, "#line 1 %q\n%s\n#line 1 \"wrappers\"\n", name, body)
	for _, k := range s.Kernels {
		if err := k.wrapper(&b); err != nil {
			return "", err
		}
	}
	for _, c := range s.Constants {
		fmt.Fprintf(&b, "extern \"C\" { void *mslc_%d = &%s; }\n", c.Index, c.Name)
	}
	for _, t := range s.Structs {
		fmt.Fprintf(&b, "extern \"C\" { unsigned msls_%s[] = {sizeof(%s)", t.Name, t.Name)
		for _, f := range t.Fields {
			fmt.Fprintf(&b, ", offsetof(%s, %s)", t.Name, f.Name)
		}
		b.WriteString("}; }\n")
	}
	return b.String(), nil
}

// builtins: attribute to field of msl_tid; vectors have three components.
var (
	vectorBuiltins = map[string]string{"thread_position_in_grid": "tpig", "thread_position_in_threadgroup": "tptg",
		"threadgroup_position_in_grid": "tgpig",
		"threads_per_threadgroup":      "tpt", "threadgroups_per_grid": "tgpg", "threads_per_grid": "tpg"}
	scalarBuiltins = map[string]string{"thread_index_in_simdgroup": "lane", "simdgroup_index_in_threadgroup": "sg",
		"simdgroups_per_threadgroup": "nsg", "thread_index_in_threadgroup": "tiitg"}
)

func (k Kernel) wrapper(b *strings.Builder) error {
	fmt.Fprintf(b, "extern \"C\" void mslk_%s(void **a, msl_tid *t) { (void)a; (void)t; ", k.Name)
	err := k.writeCall(b)
	b.WriteString(" }\n")
	return err
}

// writeCall writes the call of the kernel with its arguments from a, pointers by buffer index, and t, what the thread
// knows of itself.
func (k Kernel) writeCall(b *strings.Builder) error {
	b.WriteString(k.call + "(")
	for i, p := range k.args {
		if i > 0 {
			b.WriteString(", ")
		}
		at := strings.LastIndexAny(p.decl, " *&") + 1
		kind := strings.TrimSpace(p.decl[:at])
		switch {
		case reBuffer.MatchString(p.attribute):
			index := reBuffer.FindStringSubmatch(p.attribute)[1]
			if of, ok := strings.CutSuffix(kind, "&"); ok {
				fmt.Fprintf(b, "*(%s*)a[%s]", of, index)
			} else {
				fmt.Fprintf(b, "(%s)a[%s]", kind, index)
			}
		case vectorBuiltins[p.attribute] != "":
			f := vectorBuiltins[p.attribute]
			switch kind {
			case "uint3":
				fmt.Fprintf(b, "uint3{t->%s[0], t->%s[1], t->%s[2]}", f, f, f)
			case "uint2":
				fmt.Fprintf(b, "uint2{t->%s[0], t->%s[1]}", f, f)
			default:
				fmt.Fprintf(b, "t->%s[0]", f)
			}
		case scalarBuiltins[p.attribute] != "":
			fmt.Fprintf(b, "t->%s", scalarBuiltins[p.attribute])
		default:
			return fmt.Errorf("kernel %s: the attribute of %q is not known here", k.Name, p.decl+" [["+p.attribute+"]]")
		}
	}
	b.WriteString(");")
	return nil
}
