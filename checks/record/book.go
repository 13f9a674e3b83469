// Package record keeps what a check did: its setup, every answer as a line of JSON, and the state "not finished" in the
// file's own name until the last task is done. A broken run continues where it was, with the same setup only.
//
// In the folder, NAME.partial.jsonl is the run that is under way: its first line is the setup, each other line an
// answer. A finished run is NAME-TIME.jsonl, with NAME-TIME.json, the report, beside it.
package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"slipway/checks/client"
	"slipway/fault"
)

// Setup is everything that the answers depend on. Two runs with equal setups put the same questions to the same server.
type Setup struct {
	Check     string            `json:"check"`
	Program   string            `json:"program"` // slipway's version
	URL       string            `json:"url"`
	Model     string            `json:"model"`
	Revision  string            `json:"revision"`
	Seed      uint64            `json:"seed"`
	Samples   int               `json:"samples"`  // per group
	Lengths   []int             `json:"lengths"`  // tokens
	Template  string            `json:"template"` // of the questions
	MaxTokens int               `json:"max_tokens"`
	Scoring   string            `json:"scoring"`
	Thinking  bool              `json:"thinking"`
	Tokens    string            `json:"tokens"` // how tokens are counted
	Quick     bool              `json:"quick"`  // a small sample, not to be quoted
	Options   map[string]string `json:"options"`
}

// Answer is one task done. Hits of Of parts were right.
type Answer struct {
	Task      string            `json:"task"`
	Group     string            `json:"group"`
	Request   string            `json:"request_sha256"` // of the last request, where there are several
	Hits      int               `json:"hits"`
	Of        int               `json:"of"`
	Expected  []string          `json:"expected"`
	Text      string            `json:"answer"`
	Reasoning string            `json:"reasoning"`
	Calls     []client.ToolCall `json:"tool_calls"`
	Finish    string            `json:"finish_reason"`
	Usage     *client.Usage     `json:"usage"`
	Seconds   float64           `json:"seconds"`
	Status    string            `json:"status"` // of checks that judge: pass, fail, unknown
	Why       string            `json:"why"`
	Parts     []Part            `json:"parts"`
	Doubts    []client.Doubt    `json:"doubts"`
}

// Part is one thing of several that an answer had to hold.
type Part struct {
	Length int     `json:"length_tokens"`
	Depth  float64 `json:"depth"` // of the document's tokens, 0 to 1
	Want   string  `json:"want"`
	Hit    bool    `json:"hit"`
}

// Book is a run under way.
type Book struct {
	root  *os.Root
	name  string
	file  *os.File
	setup Setup
	done  map[string]Answer
}

// OtherSetupError is an unfinished run of that name with another setup.
type OtherSetupError struct {
	Name   string
	Differ []string // "seed 1 there, 2 here"
}

func (e *OtherSetupError) Error() string {
	return fmt.Sprintf("%s is an unfinished run with another setup: %s", partial(e.Name), strings.Join(e.Differ, "; "))
}

// Details are the members of the setup that differ.
func (e *OtherSetupError) Details() any { return e.Differ }

// Fault: see package fault.
func (e *OtherSetupError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Stale, Step: fault.OtherRunName}
}

// DamagedError is a file of answers that cannot be read.
type DamagedError struct{ Name, Why string }

func (e *DamagedError) Error() string { return e.Name + " cannot be read: " + e.Why }

// Fault: see package fault.
func (e *DamagedError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Integrity, Step: fault.RestartRun}
}

var goodName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// GoodName reports whether a run may have the name.
func GoodName(name string) bool {
	return goodName.MatchString(name) && !strings.HasSuffix(name, ".partial")
}

func partial(name string) string { return name + ".partial.jsonl" }

// Open begins a run, or continues with one of the same name and setup. With restart an unfinished one is set aside
// under a name that says so.
func Open(root *os.Root, name string, setup Setup, restart bool, now time.Time) (*Book, error) {
	if restart {
		aside := fmt.Sprintf("%s-%s.abandoned.jsonl", name, stamp(now))
		if err := root.Rename(partial(name), aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	b := &Book{root: root, name: name, setup: setup, done: map[string]Answer{}}
	file, err := root.OpenFile(partial(name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	b.file = file
	if err := b.load(); err != nil {
		file.Close()
		return nil, err
	}
	return b, nil
}

// load reads what is there. A last line without its end was being written when the run broke: it is taken off.
func (b *Book) load() error {
	raw, err := io.ReadAll(b.file)
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(raw, '\n') + 1
	if err := b.file.Truncate(int64(whole)); err != nil {
		return err
	}
	if _, err := b.file.Seek(int64(whole), io.SeekStart); err != nil {
		return err
	}
	if whole == 0 {
		return b.write(b.setup)
	}
	setup, answers, err := parse(raw[:whole])
	if err != nil {
		return &DamagedError{partial(b.name), err.Error()}
	}
	if differ := differences(setup, b.setup); len(differ) > 0 {
		return &OtherSetupError{b.name, differ}
	}
	for _, a := range answers {
		b.done[a.Task] = a
	}
	return nil
}

func parse(raw []byte) (setup Setup, answers []Answer, err error) {
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 64<<20)
	for first := true; lines.Scan(); first = false {
		if first {
			err = json.Unmarshal(lines.Bytes(), &setup)
		} else {
			var a Answer
			err = json.Unmarshal(lines.Bytes(), &a)
			answers = append(answers, a)
		}
		if err != nil {
			return setup, answers, err
		}
	}
	if err = lines.Err(); err == nil && setup.Check == "" {
		err = errors.New("it does not begin with a setup")
	}
	return setup, answers, err
}

// Read gives a finished run's setup and answers.
func Read(path string) (Setup, []Answer, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Setup{}, nil, err
	}
	if strings.HasSuffix(path, ".partial.jsonl") || strings.HasSuffix(path, ".abandoned.jsonl") {
		return Setup{}, nil, &DamagedError{path, "the run is not finished"}
	}
	setup, answers, err := parse(raw)
	if err != nil {
		return setup, nil, &DamagedError{path, err.Error()}
	}
	return setup, answers, nil
}

// differences names the members that are not equal.
func differences(there, here Setup) []string {
	var differ []string
	a, b := reflect.ValueOf(there), reflect.ValueOf(here)
	for i := range a.NumField() {
		x, _ := json.Marshal(a.Field(i).Interface())
		y, _ := json.Marshal(b.Field(i).Interface())
		if !bytes.Equal(x, y) {
			name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
			differ = append(differ, fmt.Sprintf("%s %s there, %s here", name, client.Printable(string(x)),
				client.Printable(string(y))))
		}
	}
	return differ
}

// Done is how many tasks have an answer.
func (b *Book) Done() int { return len(b.done) }

// Find gives a task's answer.
func (b *Book) Find(task string) (Answer, bool) {
	a, ok := b.done[task]
	return a, ok
}

// Add keeps an answer. It is on the disk when Add returns.
func (b *Book) Add(a Answer) error {
	if err := b.write(a); err != nil {
		return err
	}
	b.done[a.Task] = a
	return nil
}

func (b *Book) write(value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if _, err := b.file.Write(append(raw, '\n')); err != nil {
		return err
	}
	return b.file.Sync()
}

// Close ends a run that continues later.
func (b *Book) Close() error { return b.file.Close() }

// Finish gives the run its final name and writes the files beside it, by their endings (".json", ".png"), first. It
// returns the final name without an ending.
func (b *Book) Finish(now time.Time, beside map[string][]byte) (string, error) {
	base := b.name + "-" + stamp(now)
	for n := 2; ; n++ {
		if _, err := b.root.Lstat(base + ".jsonl"); errors.Is(err, fs.ErrNotExist) {
			break
		}
		base = fmt.Sprintf("%s-%s-%d", b.name, stamp(now), n)
	}
	var endings []string
	for ending := range beside {
		endings = append(endings, ending)
	}
	slices.Sort(endings)
	for _, ending := range endings {
		if err := b.root.WriteFile(base+ending, beside[ending], 0o600); err != nil {
			return "", err
		}
	}
	if err := b.file.Close(); err != nil {
		return "", err
	}
	return base, b.root.Rename(partial(b.name), base+".jsonl")
}

func stamp(now time.Time) string { return now.UTC().Format("20060102-150405") }
