package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"unicode"
	"unicode/utf8"

	"slipway/engine/api/web"
	"slipway/engine/serve"
)

// system answers GET /slipway/system.
func (s *Server) system(w http.ResponseWriter, _ *http.Request) {
	v := system{SchemaVersion: 1, At: s.opt.Now(), Totals: s.opt.Metrics.totals(),
		Process: systemProcess{s.opt.Version, s.opt.PID, s.opt.Started.UTC(), s.opt.LaunchID, s.opt.ShowSnippets},
		History: systemHistory{int(serve.HistoryStep.Seconds()), []systemStep{}}}
	for _, step := range s.opt.Engine.Ledger().History() {
		v.History.Steps = append(v.History.Steps, systemStep{step.Start.UTC(), step.CachedTokens, step.ComputedTokens, step.CompletionTokens, step.Ended})
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
		launch, err := ReadLaunch(s.opt.LaunchFile)
		if err == nil {
			v.Launch = launch
		} else if s.launchTold.CompareAndSwap(false, true) {
			s.opt.Log.Warn("what the installer says of this launch cannot be read", "error", err.Error())
		}
	}
	web.SendJSON(w, http.StatusOK, v)
}

func (m *Metrics) totals() systemTotals {
	m.mu.Lock()
	defer m.mu.Unlock()
	return systemTotals{maps.Clone(m.outcomes), m.usage.PromptTokens(), m.usage.CachedTokens, m.usage.ComputedTokens, m.usage.CompletionTokens}
}

// Bounds on what an installer may leave behind.
const (
	mostLaunchBytes = 64 << 10
	mostNeighbors   = 32
)

// ReadLaunch reads what the installer left behind. Errors: the file's, or what is wrong with it.
func ReadLaunch(path string) (*Launch, error) {
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
	var l Launch
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
		if !utf8.ValidString(*text) || hasControl(*text) {
			return nil, errors.New("it holds a text with control characters")
		}
	}
	if l.Neighbors == nil {
		l.Neighbors = []Neighbor{}
	}
	return &l, nil
}

func hasControl(s string) bool {
	for _, r := range s {
		if unicode.IsControl(r) {
			return true
		}
	}
	return false
}
