package neighbor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"howett.net/plist"

	"slipway/atomicfile"
	"slipway/installer/process"
)

// ProcessIdentity is process.Identity, so that callers of Hold need one import less.
type ProcessIdentity = process.Identity

// agent is the one-shot LaunchAgent: launchd reads it at the next login after a reboot, runs it once, and the restore
// removes it. It is written and never bootstrapped, so nothing runs before that.
type agent struct {
	Label            string   `plist:"Label"`
	ProgramArguments []string `plist:"ProgramArguments"`
	RunAtLoad        bool     `plist:"RunAtLoad"`
	KeepAlive        bool     `plist:"KeepAlive"`
	ProcessType      string   `plist:"ProcessType"`
}

// agentLabel differs for every home, so that two homes do not take each other's file.
func (s *System) agentLabel() string {
	sum := sha256.Sum256([]byte(s.Home))
	return "dev.slipway.restore." + hex.EncodeToString(sum[:4])
}

// RebootAgentPath is the file outside our home, for the plan, the consent and the receipt; empty where there is none.
func (s *System) RebootAgentPath() string {
	if s.AgentFolder == "" {
		return ""
	}
	return filepath.Join(s.AgentFolder, s.agentLabel()+".plist")
}

// WriteRebootAgent writes the file, which names the restorer: that has to be there and right. A file that is there
// already and is not ours is refused.
func (s *System) WriteRebootAgent() error {
	kept, ok := s.restorer()
	if !ok {
		return fmt.Errorf("%s is not the program that slipway put there, so it is not started", kept)
	}
	path := s.RebootAgentPath()
	if err := s.ownAgent(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b, err := plist.MarshalIndent(agent{Label: s.agentLabel(), ProgramArguments: s.againArgs(kept, "restore"),
		RunAtLoad: true, ProcessType: "Background"}, plist.XMLFormat, "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.AgentFolder, 0o755); err != nil {
		return err
	}
	return atomicfile.Write(path, b, 0o644)
}

// RemoveRebootAgent removes the file if it is ours; a missing one is no error.
func (s *System) RemoveRebootAgent() error {
	path := s.RebootAgentPath()
	if path == "" {
		return nil
	}
	switch err := s.ownAgent(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return os.Remove(path)
}

func (s *System) ownAgent(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no plain file, so slipway leaves it alone", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var found agent
	if _, err := plist.Unmarshal(b, &found); err != nil || found.Label != s.agentLabel() {
		return fmt.Errorf("%s is not slipway's file, so slipway leaves it alone", path)
	}
	return nil
}
