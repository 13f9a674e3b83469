// Command told reads what go test -json writes and prints a line for each package that passed, all of what one that failed
// said, and last the sentence of every test that was skipped, also of packages that passed. It ends with 1 when a package
// failed or the input ends before its packages do, so that it may stand at the end of a pipe.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// event is one line of go test -json: see go doc test2json.
type event struct {
	Action, Package, Test, Output string
}

func main() {
	if !tell(os.Stdin, os.Stdout) {
		os.Exit(1)
	}
}

// tell is true when every package that began has ended and none failed.
func tell(in io.Reader, out io.Writer) bool {
	var (
		lines   = bufio.NewScanner(in)
		said    = map[string][]string{} // package -> all of its output
		ofTest  = map[string][]string{} // package and test -> its output
		open    = map[string]bool{}
		skipped []string
		good    = true
	)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text()) // a tool's own words
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "start":
			open[e.Package] = true
		case "build-output":
			fmt.Fprint(out, e.Output)
		case "build-fail":
			good = false
		case "output":
			said[e.Package] = append(said[e.Package], e.Output)
			if e.Test != "" {
				ofTest[key] = append(ofTest[key], e.Output)
			}
		case "pass", "fail", "skip":
			if e.Test != "" {
				if e.Action == "skip" {
					skipped = append(skipped, fmt.Sprintf("%s %s: %s", e.Package, e.Test, sentence(ofTest[key])))
				}
				delete(ofTest, key)
				break
			}
			good = good && e.Action != "fail"
			all := said[e.Package]
			if e.Action != "fail" && len(all) > 0 {
				all = all[len(all)-1:] // "ok", or "no test files"
			}
			fmt.Fprint(out, strings.Join(all, ""))
			delete(open, e.Package)
			delete(said, e.Package)
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(out, err)
		return false
	}
	for name := range open {
		fmt.Fprintf(out, "%s began and never ended\n%s", name, strings.Join(said[name], ""))
		good = false
	}
	for _, s := range skipped {
		fmt.Fprintln(out, "skipped:", s)
	}
	return good
}

// sentence is what a test said, without the lines that frame it.
func sentence(output []string) string {
	var words []string
	for _, line := range output {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			words = append(words, line)
		}
	}
	return strings.Join(words, " ")
}
