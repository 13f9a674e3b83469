package api_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"slipway/engine/api"
	"slipway/engine/serve"
)

const (
	firstQuestion = "Write the word lamp into the file a.txt."
	nextQuestion  = "Say once more that it is done."
)

// agentModel speaks where a real one would: it calls the client's tool for the first question, and says what it knows
// after that. Clients ask other things too, such as for a title, and offer no tools then.
type agentModel struct {
	api.Engine
	s    *server
	tool string // name of the client's function
	file string // its parameter for a path
	dir  string
}

func (m *agentModel) Submit(ctx context.Context, r serve.Request) (*serve.Reply, error) {
	prompt := pocket().Tokenizer.Decode(r.Prompt)
	asked := strings.LastIndex(prompt, firstQuestion)
	said := "A title"
	switch {
	case !strings.Contains(prompt, "<tools>") || asked < 0:
	case strings.Contains(prompt, nextQuestion):
		said = "It is still done."
	case strings.Contains(prompt[asked:], "<tool_response>"):
		said = "It is done."
	default:
		said = "I write it.\n\n<tool_call>\n<function=" + m.tool + ">\n<parameter=" + m.file + ">\n" +
			filepath.Join(m.dir, "a.txt") + "\n</parameter>\n<parameter=content>\nlamp\n</parameter>\n" +
			"</function>\n</tool_call>"
		if m.file == "cmd" {
			said = "I write it.\n\n<tool_call>\n<function=" + m.tool + ">\n<parameter=cmd>\necho lamp > a.txt\n" +
				"</parameter>\n</function>\n</tool_call>"
		}
	}
	if strings.HasSuffix(prompt, "<think>\n") {
		said = "I think.\n</think>\n\n" + said
	}
	m.s.say(said)
	return m.Engine.Submit(ctx, r)
}

// Real agents do a turn with a tool call and a follow-up, each in an empty home and an empty repository. make clients
// installs them; the model is too weak to call their tools, so a scripted one speaks.
func TestRealAgentsDoATurnAndAFollowUp(t *testing.T) {
	bin := os.Getenv("SLIPWAY_CLIENTS")
	if bin == "" {
		t.Skip("real agents are run by make clients")
	}
	for _, agent := range []struct {
		name, tool, file string
		connect          string            // what slipway connect prints is its settings
		files            map[string]string // in the home, to the line at which each begins in what is printed
		more             string            // behind the text of every file
		env              []string
		first, next      []string
	}{
		{
			name: "claude", tool: "Write", file: "file_path", connect: "claude-code",
			first: []string{"--allowedTools", "Write", "-p", firstQuestion},
			next:  []string{"--allowedTools", "Write", "-c", "-p", nextQuestion},
		},
		{
			name: "codex", tool: "exec_command", file: "cmd", connect: "codex",
			files: map[string]string{".codex/config.toml": "# Codex"}, more: "\n[analytics]\nenabled = false\n",
			first: []string{"exec", "--dangerously-bypass-approvals-and-sandbox", firstQuestion},
			next:  []string{"exec", "resume", "--last", "--dangerously-bypass-approvals-and-sandbox", nextQuestion},
		},
		{
			name: "qwen", tool: "write_file", file: "file_path", connect: "qwen-code",
			files: map[string]string{".qwen/settings.json": "// ~/.qwen"},
			first: []string{"--auth-type", "openai", "--yolo", "-p", firstQuestion},
			next:  []string{"--auth-type", "openai", "--yolo", "--continue", "-p", nextQuestion},
		},
		{
			name: "opencode", tool: "write", file: "filePath", connect: "opencode",
			files: map[string]string{".config/opencode/opencode.json": "// opencode"},
			env:   []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1"},
			first: []string{"run", firstQuestion},
			next:  []string{"run", "--continue", nextQuestion},
		},
		{
			name: "cn", tool: "Write", file: "filepath", connect: "continue",
			files: map[string]string{"config.yaml": "# Continue"},
			env:   []string{"CONTINUE_TELEMETRY_ENABLED=0", "CONTINUE_CLI_ENABLE_TELEMETRY=0"},
			first: []string{"--config", "{{HOME}}/config.yaml", "--auto", "-p", firstQuestion},
			next:  []string{"--config", "{{HOME}}/config.yaml", "--auto", "--resume", "-p", nextQuestion},
		},
	} {
		t.Run(agent.name, func(t *testing.T) {
			home, repository := t.TempDir(), t.TempDir()
			if out, err := exec.Command("git", "init", "-q", repository).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			model := &agentModel{tool: agent.tool, file: agent.file, dir: repository}
			s := start(t, setup{window: 1 << 17, chunk: 1 << 17, queue: 9, bodyBytes: 8 << 20,
				wrap: func(e api.Engine) api.Engine { model.Engine = e; return model }})
			model.s = s
			fill := strings.NewReplacer("{{API}}", s.URL+"/v1", "{{ROOT}}", s.URL, "{{MODEL}}", "pocket",
				"{{KEY}}", "none", "{{WINDOW}}", "131072", "{{HOME}}", home).Replace
			printed := connected(t, agent.connect)
			for name, begins := range agent.files {
				_, text, found := strings.Cut(printed, begins)
				if !found {
					t.Fatalf("%s is not in what connect prints: %s", begins, printed)
				}
				_, text, _ = strings.Cut(text, "\n") // the line that says where it goes
				path := filepath.Join(home, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(fill(text+agent.more)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			run := func(arguments []string) string {
				var given []string
				for _, argument := range arguments {
					given = append(given, fill(argument))
				}
				c := exec.Command(filepath.Join(bin, ".bin", agent.name), given...)
				c.Dir = repository
				c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=dumb", "IS_SANDBOX=1", "NO_COLOR=1",
					"DO_NOT_TRACK=1"}
				c.Env = append(c.Env, agent.env...)
				for _, set := range exported.FindAllStringSubmatch(printed, -1) {
					c.Env = append(c.Env, fill(set[1]+"="+set[2]))
				}
				out, err := c.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s\nthe server's log:\n%s", agent.name, err, out, s.log.String())
				}
				return string(out)
			}
			said := run(agent.first)
			written, err := os.ReadFile(filepath.Join(repository, "a.txt"))
			if err != nil || strings.TrimSpace(string(written)) != "lamp" || !strings.Contains(said, "It is done.") {
				t.Errorf("a.txt holds %q, %v; it said\n%s\nthe server's log:\n%s", written, err, said, s.log.String())
			}
			if said = run(agent.next); !strings.Contains(said, "It is still done.") {
				t.Errorf("the follow-up said\n%s\nthe server's log:\n%s", said, s.log.String())
			}
		})
	}
}

// exported is a variable that a printed shell text sets.
var exported = regexp.MustCompile(`(?m)^export (\w+)="?([^"\n]*)"?$`)

// connected is the text of slipway connect, before the server's values are put in.
func connected(t *testing.T, client string) string {
	t.Helper()
	text, err := os.ReadFile("../../installer/operate/connect/" + client + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
