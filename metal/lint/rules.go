package lint

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	reComment   = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
	reForbidden = regexp.MustCompile(
		`\b(double|new|delete|virtual|throw|try|catch|goto|asm|dynamic_cast|typeid|std|long\s+long|static|printf)\b|\[[&=]?\]\s*\(|\[[&=]\]`)
	reBuffer  = regexp.MustCompile(`\[\[buffer\((\d+)\)\]\]`)
	reBuiltin = regexp.MustCompile(
		`(\w+)\s+\w+\s*\[\[(thread_\w+|threadgroup\w*|threads_\w+|simdgroup\w*|threadgroups_\w+)\]\]`)
	reFunction = regexp.MustCompile(`(?m)^(?:inline|kernel)\s+[\w<>, ]+?\s+(\w+)\s*\(`)
	rePointer  = regexp.MustCompile(
		`(?:^|[(,;{])\s*((?:const\s+|device\s+|constant\s+|thread\s+|threadgroup\s+)*)((?:float|half|bfloat|uint|int|uchar|ushort|ulong|atomic_uint|T)[234]?)\s*(?:const\s*)?[*&]`)
	reLine = regexp.MustCompile(`(?m)^#line (\d+) "([^"]*)"`)
	reFast = regexp.MustCompile(`(precise::|fast::|\w)?\b(exp|log|sqrt|rsqrt|sin|cos)\s*\(`)
)

// builtinTypes: what Metal accepts; of these the kernels use the unsigned 32-bit forms.
var builtinTypes = map[string]string{
	"thread_position_in_grid": "uint uint2 uint3", "thread_position_in_threadgroup": "uint uint2 uint3",
	"threadgroup_position_in_grid": "uint uint2 uint3", "threads_per_threadgroup": "uint uint2 uint3",
	"threadgroups_per_grid": "uint uint2 uint3",
	"threads_per_grid":      "uint uint2 uint3", "thread_index_in_simdgroup": "uint",
	"simdgroup_index_in_threadgroup": "uint",
	"simdgroups_per_threadgroup":     "uint", "thread_index_in_threadgroup": "uint",
}

// Rules applies our own rules to one file.
func Rules(name, text string) []Finding {
	code := reComment.ReplaceAllStringFunc(text, func(c string) string {
		return strings.Repeat("\n", strings.Count(c, "\n"))
	})
	var found []Finding
	report := func(at int, format string, args ...any) {
		file, line := place(name, code, at)
		found = append(found, Finding{file, line, fmt.Sprintf(format, args...)})
	}
	for _, m := range reForbidden.FindAllStringIndex(code, -1) {
		report(m[0], "%q is not in Metal's language, or not for kernels", strings.TrimSpace(code[m[0]:m[1]]))
	}
	for _, m := range reBuffer.FindAllStringSubmatchIndex(code, -1) {
		if i, err := strconv.Atoi(code[m[2]:m[3]]); err != nil || i > 30 {
			report(m[0], "buffer %s: Metal has 0 to 30", code[m[2]:m[3]])
		}
	}
	for _, m := range reBuiltin.FindAllStringSubmatchIndex(code, -1) {
		kind, attribute := code[m[2]:m[3]], code[m[4]:m[5]]
		if !contains(builtinTypes[attribute], kind) {
			report(m[0], "%s as %s: wanted %s", attribute, kind, strings.ReplaceAll(builtinTypes[attribute], " ", ", "))
		}
	}
	for _, m := range rePointer.FindAllStringSubmatchIndex(code, -1) {
		if q := code[m[2]:m[3]]; !strings.Contains(q, "device") && !strings.Contains(q, "constant") &&
			!strings.Contains(q, "thread") {
			report(m[4], "a pointer or reference to %s names no memory", code[m[4]:m[5]])
		}
	}
	for _, m := range reFast.FindAllStringSubmatchIndex(code, -1) {
		if m[2] >= 0 && code[m[2]:m[3]] == "precise::" || m[2] >= 0 && !strings.Contains(code[m[2]:m[3]], "::") {
			continue
		}
		report(m[0], "%s: say precise::%s, whatever the compiler's options", code[m[4]:m[5]], code[m[4]:m[5]])
	}
	return append(append(found, threadgroupMemory(name, code)...), recursion(name, code)...)
}

// place is the file and line of an offset, by the #line directives before it.
func place(name, code string, at int) (string, int) {
	before := code[:at]
	marks := reLine.FindAllStringSubmatchIndex(before, -1)
	if len(marks) == 0 {
		return name, 1 + strings.Count(before, "\n")
	}
	m := marks[len(marks)-1]
	line, _ := strconv.Atoi(before[m[2]:m[3]])
	return before[m[4]:m[5]], line - 1 + strings.Count(before[m[1]:], "\n")
}

func contains(list, word string) bool {
	for _, w := range strings.Fields(list) {
		if w == word {
			return true
		}
	}
	return false
}

// recursion reports functions that call themselves, also through others. A function ends at the first brace that begins
// a line, or with its own line.
func recursion(name, code string) []Finding {
	type function struct {
		name, body string
		at         int
	}
	var all []function
	marks := reFunction.FindAllStringSubmatchIndex(code, -1)
	for _, m := range marks {
		body := code[m[1]:]
		if line, _, ok := strings.Cut(body, "\n"); ok && strings.HasSuffix(strings.TrimSpace(line), "}") {
			body = line
		} else if end := strings.Index(body, "\n}"); end >= 0 {
			body = body[:end]
		}
		all = append(all, function{code[m[2]:m[3]], body, m[0]})
	}
	calls := map[string][]string{}
	for _, f := range all {
		for _, g := range all {
			if regexp.MustCompile(`\b` + g.name + `\s*(<[^;]*?>)?\s*\(`).MatchString(f.body) {
				calls[f.name] = append(calls[f.name], g.name)
			}
		}
	}
	var found []Finding
	for _, f := range all {
		seen := map[string]bool{}
		var reaches func(from string) bool
		reaches = func(from string) bool {
			for _, c := range calls[from] {
				if c == f.name {
					return true
				}
				if !seen[c] {
					seen[c] = true
					if reaches(c) {
						return true
					}
				}
			}
			return false
		}
		if reaches(f.name) {
			file, line := place(name, code, f.at)
			found = append(found, Finding{file, line, f.name + " calls itself: Metal has no recursion"})
		}
	}
	return found
}
