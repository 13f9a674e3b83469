// Command testreport reads the output of go test -json. It prints one line for each package that passed and the whole
// output of each package that failed. At the end it prints the ten slowest tests and the reason of every skipped test,
// also in packages that passed. It exits with 1 when a package failed or when the input ends before its packages do, so
// it can be the last command of a pipe.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// slowestShown is how many of the slowest tests are printed.
const slowestShown = 10

// event is one line of go test -json: see go doc test2json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds, in the events that end a test or a package
}

// timedTest is a test that ended, and how long it took.
type timedTest struct {
	name    string
	seconds float64
}

// run is what is known of a test run so far.
type run struct {
	packageOutput map[string][]string // package -> its output, tests included
	testOutput    map[string][]string // package and test -> its output
	open          map[string]bool     // packages that have begun and not ended
	skipped       []string            // a sentence each
	timed         []timedTest
	failed        bool
}

func main() {
	if !report(os.Stdin, os.Stdout) {
		os.Exit(1)
	}
}

// report returns true when every package that began has ended and none failed.
func report(in io.Reader, out io.Writer) bool {
	r := run{packageOutput: map[string][]string{}, testOutput: map[string][]string{}, open: map[string]bool{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text()) // the output of another tool
			continue
		}
		r.read(e, out)
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(out, err)
		return false
	}
	for name := range r.open {
		fmt.Fprintf(out, "%s began and did not end\n%s", name, strings.Join(r.packageOutput[name], ""))
		r.failed = true
	}
	r.printSlowest(out)
	for _, s := range r.skipped {
		fmt.Fprintln(out, "skipped:", s)
	}
	return !r.failed
}

// read takes one event in, and prints what belongs to a package that it ends.
func (r *run) read(e event, out io.Writer) {
	switch e.Action {
	case "start":
		r.open[e.Package] = true
	case "build-output":
		fmt.Fprint(out, e.Output)
	case "build-fail":
		r.failed = true
	case "output":
		r.packageOutput[e.Package] = append(r.packageOutput[e.Package], e.Output)
		if e.Test != "" {
			key := e.Package + " " + e.Test
			r.testOutput[key] = append(r.testOutput[key], e.Output)
		}
	case "pass", "fail", "skip":
		if e.Test != "" {
			r.endTest(e)
		} else {
			r.endPackage(e, out)
		}
	}
}

func (r *run) endTest(e event) {
	key := e.Package + " " + e.Test
	if e.Action == "skip" {
		r.skipped = append(r.skipped, fmt.Sprintf("%s: %s", key, sentence(r.testOutput[key])))
	}
	delete(r.testOutput, key)
	r.timed = append(r.timed, timedTest{key, e.Elapsed})
}

func (r *run) endPackage(e event, out io.Writer) {
	lines := r.packageOutput[e.Package]
	if e.Action == "fail" {
		r.failed = true
	} else if len(lines) > 0 {
		lines = lines[len(lines)-1:] // "ok", or "no test files"
	}
	fmt.Fprint(out, strings.Join(lines, ""))
	delete(r.open, e.Package)
	delete(r.packageOutput, e.Package)
}

// printSlowest prints the slowest tests. A test's time includes its subtests and the time that it waited for others.
func (r *run) printSlowest(out io.Writer) {
	slices.SortStableFunc(r.timed, func(a, b timedTest) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, t := range r.timed[:min(slowestShown, len(r.timed))] {
		fmt.Fprintf(out, "slow: %6.1f s %s\n", t.seconds, t.name)
	}
}

// sentence is what a test printed, without the lines that frame it.
func sentence(output []string) string {
	var words []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			words = append(words, line)
		}
	}
	return strings.Join(words, " ")
}
