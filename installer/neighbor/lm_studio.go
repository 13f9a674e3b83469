package neighbor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
		return strings.Contains(c.exe, "LM Studio.app/") || strings.Contains(c.exe, "/.lmstudio/") ||
			c.named("llmster", "lm-studio", "LM Studio")
	},
	answers: func(l *look) bool {
		on, _ := l.get("/lmstudio-greeting").flag("lmstudio")
		return on
	},
	models: lmStudioModels,
	idle:   lmStudioIdle,
	unload: func(l *look, m record.Model) error {
		return l.done(unloadPatience, "/api/v1/models/unload", map[string]any{"instance_id": m.ID})
	},
	load:   lmStudioLoad,
	losses: lmStudioLosses,
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
			// The key is kept as the path: an instance may have any name, so the name alone proves no model.
			models = append(models, record.Model{ID: s, Path: name, Settings: settings})
		}
	}
	return models, ok
}

// lmStudioIdle asks `lms ps --json`, the only way that LM Studio has; while only looking it is not run.
func lmStudioIdle(l *look, t *sample) {
	if models, ok := lmStudioModels(l); ok && len(models) == 0 {
		return // nothing loaded, nothing to do
	}
	if r := l.get("/api/v1/models"); r.protected() {
		t.isUnknown("/api/v1/models wants a key")
		return
	}
	if !l.stopping || l.foreign.lms == "" {
		t.isUnknown("only `lms ps` reports whether it works, which slipway does not run while looking")
		return
	}
	out, err := l.run(10*time.Second, l.foreign.lms, "ps", "--json")
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

// lmsSettings are the load settings that /api/v1/models shows and for which `lms load` has an option (lms of 13 August
// 2026, src/subcommands/load.ts). It has none for the others, and does not show a time to live.
var lmsSettings = map[string]string{"context_length": "--context-length", "parallel": "--parallel"}

func lmStudioLosses(models []record.Model) []string {
	var losses []string
	for _, m := range models {
		var settings struct{ Config map[string]json.RawMessage }
		json.Unmarshal(m.Settings, &settings)
		var names []string
		for _, name := range slices.Sorted(maps.Keys(settings.Config)) {
			if lmsSettings[name] == "" {
				names = append(names, variable(name))
			}
		}
		if len(names) > 0 {
			losses = append(losses, fmt.Sprintf("%s is loaded again with LM Studio's own defaults for %s",
				quoted(m.ID), strings.Join(names, ", ")))
		}
	}
	return losses
}

// lmStudioLoad runs `lms load KEY`. The option --yes takes the best match of the key, which need not be the same model:
// whether it is one is judged afterwards by the server's own list.
func lmStudioLoad(l *look, m record.Model) error {
	var settings struct {
		Key    string
		Config map[string]json.RawMessage
	}
	if err := json.Unmarshal(m.Settings, &settings); err != nil || settings.Key == "" {
		return fmt.Errorf("the record does not say how %s was loaded", plain(m.ID))
	}
	if l.foreign.lms == "" {
		return fmt.Errorf("the program lms is not there; load %s in LM Studio", plain(m.ID))
	}
	args := []string{"load", settings.Key, "--identifier", m.ID, "--yes"}
	for _, name := range slices.Sorted(maps.Keys(lmsSettings)) {
		if n, err := strconv.Atoi(string(settings.Config[name])); err == nil && n > 0 {
			args = append(args, lmsSettings[name], strconv.Itoa(n))
		}
	}
	_, err := l.run(loadPatience, l.foreign.lms, args...)
	return err
}

// lmsIn finds LM Studio's command in the user's home. Only this place: a program of that name in PATH could be
// anything.
func lmsIn(userHome string) string {
	for _, folder := range []string{".lmstudio", ".cache/lm-studio"} {
		program := filepath.Join(userHome, folder, "bin", "lms")
		if found, err := exec.LookPath(program); err == nil {
			return found
		}
	}
	return ""
}

// A model takes its time: 100 GB come from a disk in minutes, and leave memory in seconds.
const (
	loadPatience   = 10 * time.Minute
	unloadPatience = time.Minute
)

// run executes a neighbour's own tool.
func (l *look) run(patience time.Duration, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(l.ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", filepath.Base(program), args[0], err)
	}
	return out, nil
}

// done posts and demands success.
func (l *look) done(patience time.Duration, path string, body map[string]any) error {
	patient := *l
	patient.timeout = patience
	r := patient.post(path, body)
	if r.status != 200 {
		if r.failed != nil {
			return fmt.Errorf("%s: %w", path, r.failed)
		}
		return fmt.Errorf("%s answered %d", path, r.status)
	}
	return nil
}

// sameModels reports whether all wanted models are among those that are loaded, by id and, where both know it, by path.
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
