package lint

import (
	"bufio"
	"bytes"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

//go:embed shim
var shim embed.FS

// Finding is a place in a source and what is wrong there.
type Finding struct {
	File string
	Line int
	What string
}

func (f Finding) String() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.What) }

var (
	reLocal    = regexp.MustCompile(`(?m)^([ \t]+)threadgroup\s+([A-Za-z_]\w*\s+\w+(?:\s*\[[^\]\n]+\])+\s*;)`)
	reConstant = regexp.MustCompile(`(?m)^constant(\s+\w+\s+\w+)\s*\[\[function_constant\(\d+\)\]\]\s*;`)
	reHostName = regexp.MustCompile(`\[\[host_name\("[^"]+"\)\]\]`)
	reMessage  = regexp.MustCompile(`^([^:\s]+):(\d+):\d+: (?:fatal )?(?:error|warning): (.*)$`)
)

// AddressSpaces runs clang over text, in a scratch folder of dir. findings use name where text has no #line of its own.
func AddressSpaces(dir, clang, name, text string) ([]Finding, error) {
	work, err := os.MkdirTemp(dir, "lint")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	for _, file := range []string{"metal_stdlib", "metal_simdgroup_matrix"} {
		data, err := shim.ReadFile("shim/" + file)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(work, file), data, 0o600); err != nil {
			return nil, err
		}
	}
	code := reLocal.ReplaceAllString(text, "${1}static threadgroup ${2}")
	code = reConstant.ReplaceAllString(code, "extern constant$1;")
	code = reHostName.ReplaceAllString(code, "")
	input := filepath.Join(work, "source.cpp")
	if err := os.WriteFile(input, []byte("#line 1 \""+name+"\"\n"+code), 0o600); err != nil {
		return nil, err
	}
	out, err := exec.Command(clang, "-x", "c++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Wshadow",
		"-Wno-unknown-attributes", "-Wno-unused",
		"-Wno-duplicate-decl-specifier", "-Wno-undefined-internal", "-Wno-undefined-inline",
		"-Ddouble=metal_has_no_double", "-I"+work, input).CombinedOutput()
	var found []Finding
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		if m := reMessage.FindStringSubmatch(lines.Text()); m != nil {
			line, _ := strconv.Atoi(m[2])
			found = append(found, Finding{m[1], line, m[3]})
		}
	}
	if err != nil && len(found) == 0 {
		return nil, fmt.Errorf("clang over %s: %w\n%s", name, err, out)
	}
	return found, nil
}
