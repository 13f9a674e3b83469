package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"slipway/fault"
	"slipway/installer/operate"
)

// resolves reports whether a JSON pointer leads to a value in a document.
func resolves(pointer string, document any) bool {
	at := document
	for _, key := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		switch v := at.(type) {
		case map[string]any:
			next, ok := v[key]
			if !ok {
				return false
			}
			at = next
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n >= len(v) {
				return false
			}
			at = v[n]
		default:
			return false
		}
	}
	return true
}

var (
	promptPointer = regexp.MustCompile("`(/[a-z0-9_/]+)`")
	promptCommand = regexp.MustCompile("`{{SLIPWAY}} ([a-z]+)([^`]*)`")
	promptFlag    = regexp.MustCompile(`--[a-z-]+`)
)

func prompts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, language := range []string{"en", "ru"} {
		answer, err := operate.AgentPrompt(operate.AgentInput{Language: language, Command: "{{SLIPWAY}}"})
		if err != nil {
			t.Fatal(err)
		}
		texts[language] = answer.Text
	}
	return texts
}

// Every value that the text for assistants names is in the real document of the command that it is read from, and both
// languages name the same ones.
func TestAgentPromptNamesValuesThatAreThere(t *testing.T) {
	t.Parallel()
	documents := realDocuments(t)
	named := map[string][]string{}
	for language, text := range prompts(t) {
		verb := "error" // in front of the steps: any document, and one with an error
		for _, part := range strings.Split(text, "\n") {
			for _, piece := range regexp.MustCompile("`[^`]+`").FindAllString(part+" ", -1) {
				if m := promptCommand.FindStringSubmatch(piece); m != nil {
					verb = m[1]
				}
				m := promptPointer.FindStringSubmatch(piece)
				if m == nil {
					continue
				}
				named[language] = append(named[language], verb+" "+m[1])
				if !slices.ContainsFunc(documents[verb], func(d any) bool { return resolves(m[1], d) }) {
					t.Errorf("%s: %s is in no document of %s", language, m[1], verb)
				}
			}
		}
	}
	if len(named["en"]) < 25 {
		t.Errorf("only %d values are named", len(named["en"]))
	}
	for language := range named {
		slices.Sort(named[language])
	}
	if !slices.Equal(named["en"], named["ru"]) {
		t.Errorf("the languages name different values:\n%v\n%v", named["en"], named["ru"])
	}
}

// realDocuments are documents of the verbs that the text names, each in the situations that it speaks of.
func realDocuments(t *testing.T) map[string][]any {
	t.Helper()
	documents := map[string][]any{}
	r := newRig(t)
	add := func(verb string, args ...string) {
		t.Helper()
		_, out, errOut := r.run(nil, args...)
		var document any
		if err := json.Unmarshal([]byte(out), &document); err != nil {
			t.Fatalf("%v: %v\n%s%s", args, err, out, errOut)
		}
		documents[verb] = append(documents[verb], document)
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", r.port))
	if err != nil {
		t.Fatal(err)
	}
	add("doctor", append([]string{"doctor", "--json"}, r.setupArgs()[1:]...)...)
	l.Close()
	file := filepath.Join(r.dir, "p.json")
	add("plan", append([]string{"plan", "--json", "--out", file}, r.setupArgs()[1:]...)...)
	add("plan", "plan", "--json", "--model", "qwen3.5-4b-4bit")
	digest := documents["plan"][0].(map[string]any)["data"].(map[string]any)["digest"].(string)
	r.interrupt(5, "apply", "--plan", file, "--digest", digest)
	add("error", "up", "--json")
	add("apply", "apply", "--plan", file, "--digest", digest, "--detach", "--json")
	add("wait", "wait", "--json")
	add("apply", "apply", "--plan", file, "--digest", digest, "--json")
	add("status", "status", "--json")
	add("measure", "measure", "--json", "--max-tokens", "4")
	add("uninstall", "uninstall", "--dry-run", "--json")
	return documents
}

// givesConsent are the flags with which a person agrees to something, or gives something up. The text for assistants
// forbids each of them without the person's yes.
var givesConsent = []string{
	"accept-loss", "accept-told", "all", "allow-host", "allow-origin", "allow-stop", "changed-program", "replace",
	"restart", "set-aside-journal", "yes",
}

// givesNone are the others: they say what is meant, or how it is shown. --digest is the consent itself.
var givesNone = []string{
	"at-least", "attach", "codes", "deep", "detach", "digest", "disk-cache", "draft", "draft-sweep",
	"draft-tokens", "draft-tokens-b", "dry-run",
	"events",
	"file", "follow", "fresh", "grid", "home", "idle-for", "in", "in-place", "job", "json", "keep",
	"keep-models", "key-env", "key-env-b", "key-file", "key-file-b", "lang", "lengths", "limit-rate", "lines",
	"max-download", "max-tokens", "memory", "model", "model-b", "model-dir", "monitor-port", "name", "no-input",
	"no-launch", "normalize-file", "out", "patience", "plan", "port", "profile", "quick", "repeat", "samples",
	"seed", "shots", "show-answer", "source", "tasks", "thinking", "timeout", "tokens", "url", "verbose",
	"watch",
}

// Every flag is known as one that gives consent or none; the text forbids all of the first kind, in both languages, and
// names no flag that does not exist.
func TestAgentPromptForbidsEveryFlagThatGivesConsent(t *testing.T) {
	flags := map[string]bool{}
	for _, command := range leafVerbs(t) {
		for _, flag := range command.Flags {
			if hidden, ok := flag.(cli.VisibleFlag); !ok || hidden.IsVisible() {
				flags[flag.Names()[0]] = true
			}
		}
	}
	for name := range flags {
		if slices.Contains(givesConsent, name) == slices.Contains(givesNone, name) {
			t.Errorf("does --%s give consent? It has to be in one of the two lists", name)
		}
	}
	for _, name := range append(slices.Clone(givesConsent), givesNone...) {
		if !flags[name] && name != "job" {
			t.Errorf("there is no flag --%s", name)
		}
	}
	forbids := func(where, paragraph string) {
		never := map[string]bool{}
		for _, flag := range promptFlag.FindAllString(paragraph, -1) {
			never[strings.TrimPrefix(flag, "--")] = true
		}
		if got := slices.Sorted(maps.Keys(never)); !slices.Equal(got, givesConsent) {
			t.Errorf("%s forbids %v, want %v", where, got, givesConsent)
		}
	}
	page, err := os.ReadFile("../../AGENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	for paragraph := range strings.SplitSeq(string(page), "\n\n") {
		if strings.HasPrefix(paragraph, "Never ") {
			forbids("AGENTS.md", paragraph)
			page = nil
		}
	}
	if page != nil {
		t.Error("AGENTS.md forbids nothing")
	}
	for language, text := range prompts(t) {
		paragraphs := strings.Split(text, "\n\n")
		forbids(language, paragraphs[len(paragraphs)-1])
		for _, flag := range promptFlag.FindAllString(text, -1) {
			if !flags[strings.TrimPrefix(flag, "--")] {
				t.Errorf("%s names %s, which does not exist", language, flag)
			}
		}
	}
}

// The text says of every exit code of docs/exit-codes.md what to do, and of no other; 0 needs no words there.
func TestAgentPromptKnowsEveryExitCode(t *testing.T) {
	codes := []string{}
	for class := range fault.Names {
		if class != fault.OK {
			codes = append(codes, strconv.Itoa(int(class)))
		}
	}
	slices.Sort(codes)
	for language, text := range prompts(t) {
		paragraphs := strings.Split(text, "\n\n")
		var named []string
		for _, m := range regexp.MustCompile(`[0-9]+[,:]`).FindAllString(paragraphs[len(paragraphs)-2], -1) {
			named = append(named, strings.TrimRight(m, ",:"))
		}
		slices.Sort(named)
		if !slices.Equal(named, codes) {
			t.Errorf("%s knows %v, want %v", language, named, codes)
		}
	}
}

// The commands of the text are commands of this program with flags that they have.
func TestAgentPromptNamesCommandsThatAreThere(t *testing.T) {
	verbs := leafVerbs(t)
	for language, text := range prompts(t) {
		found := promptCommand.FindAllStringSubmatch(strings.ReplaceAll(text, "\n   ", " "), -1)
		if len(found) < 9 {
			t.Errorf("%s names only %d commands", language, len(found))
		}
		for _, m := range found {
			command := verbs[m[1]]
			if command == nil {
				t.Errorf("%s: there is no verb %s", language, m[1])
				continue
			}
			for _, flag := range promptFlag.FindAllString(m[2], -1) {
				if !slices.ContainsFunc(command.Flags,
					func(f cli.Flag) bool { return f.Names()[0] == strings.TrimPrefix(flag, "--") }) {
					t.Errorf("%s: %s has no %s", language, m[1], flag)
				}
			}
		}
	}
}
