package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"slipway/engine/api/web"
	"slipway/engine/serve"
	"slipway/termtext"
	"slipway/wire"
)

// system answers GET /slipway/system.
func (s *Server) system(w http.ResponseWriter, _ *http.Request) {
	v := wire.System{SchemaVersion: 1, At: s.opt.Now(), Totals: s.opt.Metrics.totals(),
		Process: wire.Process{Version: s.opt.Version, PID: s.opt.PID, Started: s.opt.Started.UTC(),
			LaunchID: s.opt.LaunchID, SnippetsShown: s.opt.ShowSnippets},
		History: wire.History{StepS: int(serve.HistoryStep.Seconds()), Steps: []wire.Step{}}}
	for _, step := range s.opt.Engine.Ledger().History() {
		v.History.Steps = append(v.History.Steps, wire.Step{Start: step.Start.UTC(),
			CachedTokens: step.CachedTokens, ComputedTokens: step.ComputedTokens,
			CompletionTokens: step.CompletionTokens,
			Ended:            step.Ended})
	}
	if s.opt.Memory != nil {
		m := s.opt.Memory()
		v.Memory = &m
	}
	if s.opt.GPU != nil {
		g := s.opt.GPU()
		v.GPU = &g
	}
	if s.opt.Machine != nil {
		m := s.opt.Machine()
		v.Machine = &m
	}
	if s.opt.LaunchFile != "" {
		launch, err := readLaunch(s.opt.LaunchFile)
		if err == nil {
			v.Launch = launch
		} else if s.launchWarned.CompareAndSwap(false, true) {
			s.opt.Log.Warn("the launch file of the installer cannot be read", "error", err.Error())
		}
	}
	web.SendJSON(w, http.StatusOK, v)
}

func (m *Metrics) totals() wire.Totals {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := wire.Totals{Requests: map[string]int{}, PromptTokens: m.usage.PromptTokens(),
		CachedTokens:   m.usage.CachedTokens,
		ComputedTokens: m.usage.ComputedTokens, CompletionTokens: m.usage.CompletionTokens}
	for reason, n := range m.outcomes {
		t.Requests[string(reason)] = n
	}
	return t
}

// Bounds of a launch file.
const (
	mostLaunchBytes = 64 << 10
	mostNeighbors   = 32
)

// readLaunch reads the launch file that the installer wrote. Errors: the file's, or what is wrong with it.
func readLaunch(path string) (*wire.Launch, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("it is no file")
	}
	raw, err := io.ReadAll(io.LimitReader(f, mostLaunchBytes+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > mostLaunchBytes {
		return nil, fmt.Errorf("it has more than %d bytes", mostLaunchBytes)
	}
	var l wire.Launch
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, err
	}
	if l.SchemaVersion != 1 || len(l.Neighbors) > mostNeighbors || l.BudgetBytes < 0 {
		return nil, errors.New("it is not of this version")
	}
	texts := []*string{&l.Profile, &l.Limit}
	for i := range l.Neighbors {
		n := &l.Neighbors[i]
		if n.Models == nil {
			n.Models = []string{}
		}
		texts = append(texts, &n.Title, &n.Sentence)
		for k := range n.Models {
			texts = append(texts, &n.Models[k])
		}
	}
	for _, text := range texts {
		if !termtext.IsLine(*text) {
			return nil, errors.New("it holds a text with control characters")
		}
	}
	if l.Neighbors == nil {
		l.Neighbors = []wire.Neighbor{}
	}
	return &l, nil
}
