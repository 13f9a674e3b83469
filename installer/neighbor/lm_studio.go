package neighbor

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/installer/neighbor/record"
)

// tools are programs of the neighbours themselves, by absolute path. They run only when slipway is about to stop or
// restore a server that has just answered, never while only looking: some of them install or wake things.
type tools struct{ lms string }

var lmStudio = kind{
	id: "lmstudio", title: "LM Studio", ports: []int{1234},
	runs: func(c command) bool {
		return strings.Contains(c.exe, "LM Studio.app/") || strings.Contains(c.exe, "/.lmstudio/") || c.named("llmster", "lm-studio", "LM Studio")
	},
	answers: func(l *look) bool {
		on, _ := l.get("/lmstudio-greeting").flag("lmstudio")
		return on
	},
	models: lmStudioModels,
	idle:   lmStudioIdle,
	unload: func(l *look, m record.Model) error {
		return l.done("/api/v1/models/unload", map[string]any{"instance_id": m.ID})
	},
	load: lmStudioLoad,
}

func lmStudioModels(l *look) ([]record.Model, bool) {
	list, ok := l.get("/api/v1/models").list("models")
	var models []record.Model
	for _, entry := range list {
		key, _ := at(entry, "key")
		name, _ := key.(string)
		instances, _ := at(entry, "loaded_instances")
		loaded, is := instances.([]any)
		if !is {
			return nil, false
		}
		for _, instance := range loaded {
			id, _ := at(instance, "id")
			s, is := id.(string)
			if !is || name == "" {
				return nil, false
			}
			config, _ := at(instance, "config")
			settings, err := json.Marshal(map[string]any{"key": name, "config": config})
			if err != nil {
				return nil, false
			}
			models = append(models, record.Model{ID: s, Settings: settings})
		}
	}
	return models, ok
}

// lmStudioIdle asks `lms ps --json`, the only way that LM Studio has; while only looking it is not run.
func lmStudioIdle(l *look, t *test) {
	if models, ok := lmStudioModels(l); ok && len(models) == 0 {
		return // nothing loaded, nothing to do
	}
	if r := l.get("/api/v1/models"); r.protected() {
		t.isUnknown("/api/v1/models wants a key")
		return
	}
	if !l.stopping || l.foreign.lms == "" {
		t.isUnknown("only `lms ps` tells whether it works, which slipway does not run while looking")
		return
	}
	out, err := l.run(l.foreign.lms, "ps", "--json")
	if err != nil {
		t.isUnknown("lms ps: %v", err)
		return
	}
	var loaded []struct {
		Identifier string
		Status     *string
		Queued     *int
	}
	if err := json.Unmarshal(out, &loaded); err != nil {
		t.isUnknown("lms ps did not print the JSON that slipway knows")
		return
	}
	for _, m := range loaded {
		switch {
		case m.Status == nil || m.Queued == nil:
			t.isUnknown("lms ps does not say whether %s works", plain(m.Identifier))
		case *m.Status != "idle" || *m.Queued != 0:
			t.isBusy("%s is %s with %d queued", plain(m.Identifier), plain(*m.Status), *m.Queued)
		}
	}
}

func lmStudioLoad(l *look, m record.Model) error {
	var settings struct {
		Key    string
		Config struct {
			ContextLength int `json:"context_length"`
		}
	}
	if err := json.Unmarshal(m.Settings, &settings); err != nil || settings.Key == "" {
		return fmt.Errorf("the record does not say how %s was loaded", plain(m.ID))
	}
	if l.foreign.lms == "" {
		return fmt.Errorf("the program lms is not there; load %s in LM Studio", plain(m.ID))
	}
	args := []string{"load", settings.Key, "--identifier", m.ID, "--yes"}
	if settings.Config.ContextLength > 0 {
		args = append(args, "--context-length", strconv.Itoa(settings.Config.ContextLength))
	}
	_, err := l.run(l.foreign.lms, args...)
	return err
}

// lmsIn finds LM Studio's command in the user's home. Only this place: a program of that name in PATH could be anything.
func lmsIn(userHome string) string {
	for _, folder := range []string{".lmstudio", ".cache/lm-studio"} {
		program := filepath.Join(userHome, folder, "bin", "lms")
		if found, err := exec.LookPath(program); err == nil {
			return found
		}
	}
	return ""
}

// run executes a neighbour's own tool.
func (l *look) run(program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(l.ctx, max(l.timeout, 10*time.Second))
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", filepath.Base(program), args[0], err)
	}
	return out, nil
}

// done posts and demands success. A model takes its time to leave memory.
func (l *look) done(path string, body map[string]any) error {
	patient := *l
	patient.timeout = max(l.timeout, time.Minute)
	r := patient.post(path, body)
	if r.status != 200 {
		if r.failed != nil {
			return fmt.Errorf("%s: %w", path, r.failed)
		}
		return fmt.Errorf("%s answered %d", path, r.status)
	}
	return nil
}

// sameModels tells whether all wanted models are among those that are loaded, by id and, where both know it, by path.
func sameModels(wanted, loaded []record.Model) bool {
	for _, w := range wanted {
		if !slices.ContainsFunc(loaded, func(m record.Model) bool {
			return m.ID == w.ID && (m.Path == "" || w.Path == "" || m.Path == w.Path)
		}) {
			return false
		}
	}
	return true
}
