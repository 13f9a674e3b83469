package slipway_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// pages are the files that show commands to people.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, name := range append(names, "README.md", "AGENTS.md", "CONTRIBUTING.md") {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found[name] = string(raw)
	}
	return found
}

// program builds one of our two programs for the tests of this folder.
func program(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	build := exec.Command("go", "build", "-o", path, "./cmd/"+name)
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

var (
	// A command of ours: at the start of a line of a code block, or between backquotes.
	shownCommand = regexp.MustCompile("(?m)(?:^|`)(?:go run \\./cmd/)?(slipway(?:-server)?) ([a-z][a-z-]*[^`\n#|]*)")
	shownFlag    = regexp.MustCompile(`--[a-z][a-z-]*`)
	codeBlock    = regexp.MustCompile("(?s)```(?:sh|console|)\n(.*?)```")
	inlineCode   = regexp.MustCompile("`[^`\n]+`")
)

// Every command that a page shows must be one that the program has, with flags that it has.
func TestPagesShowCommandsThatExist(t *testing.T) {
	programs := map[string]string{"slipway": program(t, "slipway"), "slipway-server": program(t, "slipway-server")}
	help := map[string]string{}
	helpOf := func(name string, words []string) (string, bool) {
		key := name + " " + strings.Join(words, " ")
		if text, ok := help[key]; ok {
			return text, text != ""
		}
		cmd := exec.Command(programs[name], append(slices.Clip(words), "--help")...)
		cmd.Env = append(cmd.Environ(), "SLIPWAY_HOME="+filepath.Join(t.TempDir(), "home"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			out = nil
		}
		help[key] = string(out)
		return string(out), err == nil
	}
	shown := 0
	for page, text := range pages(t) {
		var code strings.Builder
		for _, block := range codeBlock.FindAllStringSubmatch(text, -1) {
			code.WriteString(block[1] + "\n")
		}
		for _, inline := range inlineCode.FindAllString(codeBlock.ReplaceAllString(text, ""), -1) {
			code.WriteString(strings.Trim(inline, "`") + "\n")
		}
		for _, match := range shownCommand.FindAllStringSubmatch(code.String(), -1) {
			shown++
			words := strings.Fields(match[2])
			verb := words[:1]
			usage, ok := helpOf(match[1], verb)
			if ok && len(words) > 1 && regexp.MustCompile(`(?m)^\s+`+regexp.QuoteMeta(words[1])+`[ ,]`).MatchString(
				usage) && !strings.HasPrefix(words[1], "-") {
				if deeper, has := helpOf(match[1], words[:2]); has {
					usage = deeper
				}
			}
			if !ok {
				t.Errorf("%s shows %q, but %s has no verb %q", page, match[0], match[1], words[0])
				continue
			}
			for _, flag := range shownFlag.FindAllString(match[2], -1) {
				if !strings.Contains(usage, flag) {
					t.Errorf("%s shows %q, but the verb has no flag %s", page, match[0], flag)
				}
			}
		}
	}
	if shown < 10 {
		t.Fatalf("only %d commands found on all pages", shown)
	}
}

// The README's request, as it stands there, against the README's server.
func TestReadmeRequestIsAnswered(t *testing.T) {
	raw, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	body := regexp.MustCompile(`(?s)-d '(\{.*?\})'`).FindStringSubmatch(string(raw))
	if body == nil {
		t.Fatal("the README shows no request")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server := exec.CommandContext(ctx, program(t, "slipway-server"), "serve", "--model", "manifests/pocket", "--port",
		"0")
	stderr, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		server.Process.Signal(os.Interrupt)
		server.Wait()
	}()
	var base string
	lines := bufio.NewScanner(stderr)
	for base == "" && lines.Scan() {
		if _, after, ok := strings.Cut(lines.Text(), "ready at "); ok {
			base = after
		}
	}
	go io.Copy(io.Discard, stderr)
	if base == "" {
		t.Fatal("the server did not say that it is ready")
	}
	response, err := http.Post(base+"/chat/completions", "application/json", strings.NewReader(body[1]))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	stream, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for _, piece := range regexp.MustCompile(`"content":"((?:[^"\\]|\\.)*)"`).FindAllStringSubmatch(string(stream),
		-1) {
		said.WriteString(piece[1])
	}
	if said.String() != "Hello! How can I help you?" {
		t.Fatalf("status %d, the stream says %q\n%s", response.StatusCode, said.String(), stream)
	}
}

// A link between pages must lead somewhere.
func TestPagesLinkToFilesThatExist(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	for page, text := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target := filepath.Join(filepath.Dir(page), match[1])
			if _, err := os.Stat(target); err != nil && match[1] != "THIRD_PARTY_NOTICES.txt" {
				t.Errorf("%s links to %s, which is not there", page, match[1])
			}
		}
	}
}

// CONTRIBUTING.md tells of every folder with code, one folder deep where a room has several, and of none that is not
// there.
func TestContributingListsEveryFolder(t *testing.T) {
	raw, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "## Folders\n\n```\n")
	list, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("no list of folders")
	}
	for _, word := range strings.Fields(list) {
		if folder, is := strings.CutSuffix(word, "/"); is {
			if _, err := os.Stat(folder); err != nil {
				t.Errorf("CONTRIBUTING.md tells of %s/: %v", folder, err)
			}
		}
	}
	for _, pattern := range []string{"[a-z]*", "engine/*", "installer/*", "metal/*"} {
		folders, err := filepath.Glob(pattern)
		if err != nil || len(folders) == 0 {
			t.Fatalf("%s: %d folders, %v", pattern, len(folders), err)
		}
		for _, folder := range folders {
			name := filepath.Base(folder)
			if info, err := os.Stat(folder); err != nil || !info.IsDir() {
				continue
			}
			if !slices.Contains([]string{"docs", "cmd"}, name) &&
				!regexp.MustCompile(`(?m)(^|[\s,])`+name+`([\s,/;]|$)`).MatchString(list) {
				t.Errorf("CONTRIBUTING.md does not tell of %s", folder)
			}
		}
	}
}
