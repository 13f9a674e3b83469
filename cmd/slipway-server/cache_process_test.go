package main

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// turnOf asks a process and gives the reply with its token counts.
func turnOf(t *testing.T, p *process, conversation []message) (content string, prompt, cached int) {
	t.Helper()
	response := p.post(t, string(body(conversation, message{"temperature": 0, "max_tokens": 8})))
	var r struct {
		Choices []struct{ Message struct{ Content string } }
		Usage   struct {
			Prompt  int `json:"prompt_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&r); err != nil || response.StatusCode != http.StatusOK ||
		len(r.Choices) != 1 {
		t.Fatalf("status %d, %v", response.StatusCode, err)
	}
	return r.Choices[0].Message.Content, r.Usage.Prompt, r.Usage.Details.Cached
}

func TestStoppedOrKilledServerGoesOnFromDisk(t *testing.T) {
	for _, c := range []struct {
		name   string
		end    func(*testing.T, *process)
		oldest int // turns that may be lost
	}{
		{"SIGTERM", func(t *testing.T, p *process) {
			p.Process.Signal(syscall.SIGTERM)
			if code := p.ended(t); code != exitOK {
				t.Fatalf("exit code %d", code)
			}
		}, 0},
		{"kill -9 right after the reply", func(t *testing.T, p *process) {
			p.Process.Kill()
			<-p.done
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			flags := []string{"--cache-disk", dir, "--window", "2048"}
			p := serving(t, flags...)
			conversation := []message{
				user(strings.Repeat("The river runs by the old stone bridge. ", 40) + "What is it about?")}
			var prompts []int
			for _, question := range []string{"And then?", "Why?", "When?"} {
				content, prompt, _ := turnOf(t, p, conversation)
				prompts = append(prompts, prompt)
				conversation = append(conversation, message{"role": "assistant", "content": content}, user(question))
			}
			asked := slices.Clone(conversation)
			c.end(t, p)
			p = serving(t, flags...)
			_, prompt, cached := turnOf(t, p, asked)
			if known := prompts[len(prompts)-1-c.oldest]; cached < known-slack {
				t.Errorf("%d of %d tokens were restored; the last turn that may not be lost had %d", cached, prompt,
					known)
			}
			filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if info, statErr := os.Stat(path); statErr == nil && info.Mode().Perm()&0o077 != 0 {
					t.Errorf("%s has mode %v", path, info.Mode())
				}
				return nil
			})
		})
	}
}

func TestCacheSettingsThatCannotBeHonouredAreRefused(t *testing.T) {
	occupied := t.TempDir()
	if err := os.WriteFile(filepath.Join(occupied, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	held := filepath.Join(t.TempDir(), "held")
	serving(t, "--cache-disk", held, "--window", "512")
	for name, c := range map[string]struct {
		flags []string
		want  string
	}{
		"bounds without a folder": {[]string{"--cache-disk-bytes", "5000000"}, "--cache-disk is missing"},
		"disk without memory": {[]string{"--cache-disk", "x", "--cache-memory", "0"},
			"--cache-memory more than 0"},
		"memory that holds no point": {[]string{"--cache-disk", filepath.Join(t.TempDir(), "c"), "--cache-memory",
			"1000"}, "a restore point of this model takes"},
		"disk that holds no point": {[]string{"--cache-disk", filepath.Join(t.TempDir(), "c"), "--cache-disk-bytes",
			"1000"}, "holds no restore point"},
		"folder with somebody's file": {[]string{"--cache-disk", occupied}, "holds other files"},
		"folder of a running server":  {[]string{"--cache-disk", held}, "another server uses this cache folder"},
		"negative":                    {[]string{"--cache-memory", "-1"}, "number of bytes"},
	} {
		code, _, errOut := finished(t, append([]string{"serve", "--model", pocketDir, "--port", "0", "--window", "512"},
			c.flags...)...)
		if code != exitUsage || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: exit code %d: %s", name, code, errOut)
		}
	}
}

func TestNoCacheDiskWritesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	p := serving(t, "--cache-disk", dir, "--no-cache-disk", "--window", "512")
	turnOf(t, p, []message{user("Hello")})
	time.Sleep(50 * time.Millisecond)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is there: %v", err)
	}
}

func TestCacheVerbsShowAndClear(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	p := serving(t, "--cache-disk", dir, "--window", "512")
	turnOf(t, p, []message{user("Hello")})
	for name, c := range map[string]struct {
		args []string
		code int
		want string // on stdout or stderr
	}{
		"clear under a running server": {[]string{"cache", "clear", "--cache-disk", dir}, exitUsage,
			"another server uses"},
		"no folder": {[]string{"cache", "show"}, exitUsage, "--cache-disk is missing"},
		"somebody's folder": {[]string{"cache", "clear", "--cache-disk", t.TempDir()}, exitUsage,
			"no cache folder of slipway"},
		"no such command": {[]string{"cache", "burn"}, exitUsage, `no command "burn"`},
		"no command":      {[]string{"cache"}, exitUsage, "there are show and clear"},
		"argument":        {[]string{"cache", "show", "x"}, exitUsage, "takes no argument"},
		"unknown flag":    {[]string{"cache", "show", "--deep"}, exitUsage, "deep"},
	} {
		if code, out, errOut := finished(t, c.args...); code != c.code || !strings.Contains(out+errOut, c.want) {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errOut)
		}
	}
	p.Process.Signal(syscall.SIGTERM)
	p.ended(t)
	show := func() (c struct{ Points, Pages int }) {
		code, out, errOut := finished(t, "cache", "show", "--cache-disk", dir)
		if err := json.Unmarshal([]byte(out), &c); code != exitOK || err != nil {
			t.Fatalf("exit code %d, %v: %s%s", code, err, out, errOut)
		}
		return c
	}
	if c := show(); c.Points == 0 {
		t.Errorf("nothing is shown: %+v", c)
	}
	if code, _, errOut := finished(t, "cache", "clear", "--cache-disk", dir); code != exitOK {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	if c := show(); c.Points+c.Pages != 0 {
		t.Errorf("after clearing %+v", c)
	}
}
