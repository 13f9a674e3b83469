// Package record keeps, for every neighbour that slipway stopped, what it takes to start it again: one file each,
// mode 0600, written and synced before the first signal, deleted only after the neighbour answers again.
//
// Invariants of a file, checked after reading and before writing: schema 1; the ID is the file's name; the server kind
// and the channel are named; the port is between 1 and 65535; the channel's own fields are there (program, argv and an
// absolute folder for argv; label and plist for launchd and brew; unit for systemd; socket for app); no environment
// value whose name looks like a secret. argv may hold secrets: it stays in this file and is never printed.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"slipway/installer/process"
)

// Schema is the version written and the only one read.
const Schema = 1

// Channel is how a neighbour is stopped and started again.
type Channel string

const (
	ChannelArgv    Channel = "argv"    // signal; started again by its own command line
	ChannelLaunchd Channel = "launchd" // launchctl bootout and bootstrap
	ChannelBrew    Channel = "brew"    // a launchd job of brew services; same way, so that its registration stays
	ChannelSystemd Channel = "systemd" // systemctl --user stop and start
	ChannelApp     Channel = "app"     // the application's own control socket
	ChannelUnload  Channel = "unload"  // the server stays; only models leave memory
)

// State is how far things went. Each state is on disk before the step that it names is taken.
type State string

const (
	StateRecorded  State = "recorded"  // nothing was done to the neighbour yet
	StateSignalled State = "signalled" // it was, or is just about to be, asked to end
	StateExited    State = "exited"    // it was seen to end
	StateFailed    State = "failed"    // a restore was tried and did not work; Why says what happened
)

// Model is a model that was loaded. Settings are the server's own words for how (context length, time to live).
type Model struct {
	ID       string          `json:"id"`
	Path     string          `json:"path,omitempty"`
	Settings json.RawMessage `json:"settings,omitempty"`
}

// Evidence is what proved the neighbour idle at the last check before the signal.
type Evidence struct {
	Samples     int      `json:"samples"`
	SpanS       float64  `json:"span_s"`
	IdleSeconds *float64 `json:"idle_seconds"` // as the server says; null where it does not
}

// Record is one stopped neighbour.
type Record struct {
	Schema   int     `json:"schema"`
	ID       string  `json:"id"`
	Server   string  `json:"server"`
	Title    string  `json:"title"`
	Channel  Channel `json:"channel"`
	PID      int     `json:"pid"`
	StartUS  int64   `json:"start_us"`
	BootID   string  `json:"boot_id"`
	Exe      string  `json:"exe"`
	ExeInode uint64  `json:"exe_ino"`
	Program  string  `json:"program,omitempty"` // what is executed; Argv[0] is only its name
	// ProgramSHA256 is the digest of that file, in hex: an upgraded program is not started without the user's consent.
	ProgramSHA256 string   `json:"program_sha256,omitempty"`
	Argv          []string `json:"argv"`
	Cwd           string   `json:"cwd"`
	// its folder was gone at the stop already; Cwd is the user's home
	CwdGone    bool              `json:"cwd_gone,omitempty"`
	CwdNeeded  bool              `json:"cwd_needed"` // arguments or program depend on the folder
	Env        map[string]string `json:"env"`        // allow-listed values
	EnvNames   []string          `json:"env_names"`  // names whose values are not kept
	Label      string            `json:"launchd_label,omitempty"`
	Plist      string            `json:"plist,omitempty"`
	Unit       string            `json:"systemd_unit,omitempty"`
	Bundle     string            `json:"bundle,omitempty"`
	OwnHome    string            `json:"own_home,omitempty"` // of a slipway-server: its home, where StoppedBy lies
	Socket     string            `json:"control_socket,omitempty"`
	Address    string            `json:"address"` // loopback address at which it answers
	Port       int               `json:"port"`
	Ports      []int             `json:"ports,omitempty"` // all of its ports, Port among them
	Models     []Model           `json:"models"`
	Evidence   Evidence          `json:"evidence"`
	PlanDigest string            `json:"plan_digest"`
	State      State             `json:"state"`
	Why        string            `json:"why,omitempty"`
	At         time.Time         `json:"at"`
}

// Identity is the process that was stopped.
func (r Record) Identity() process.Identity {
	return process.Identity{PID: r.PID, StartUS: r.StartUS, BootID: r.BootID, Exe: r.Exe, ExeInode: r.ExeInode}
}

// InvalidError names the field that breaks an invariant.
type InvalidError struct{ ID, Why string }

func (e *InvalidError) Error() string { return "restore record " + e.ID + ": " + e.Why }

func (r Record) validate() error {
	bad := func(format string, args ...any) error {
		return &InvalidError{ID: r.ID, Why: fmt.Sprintf(format, args...)}
	}
	switch {
	case r.Schema != Schema:
		return bad("schema %d; this program knows %d", r.Schema, Schema)
	case !validID(r.ID):
		return bad("the ID is not a plain name")
	case r.Server == "" || r.PID <= 0 || r.BootID == "":
		return bad("server, pid or boot id is missing")
	case r.Port < 1 || r.Port > 65535:
		return bad("port %d", r.Port)
	}
	switch r.State {
	case StateRecorded, StateSignalled, StateExited, StateFailed:
	default:
		return bad("state %q", r.State)
	}
	for name := range r.Env {
		if Secret(name) {
			return bad("the environment holds %s", name)
		}
	}
	switch r.Channel {
	case ChannelArgv:
		if len(r.ProgramSHA256) != 64 {
			return bad("the program's digest is missing")
		}
		if !filepath.IsAbs(r.Program) || len(r.Argv) == 0 || !filepath.IsAbs(r.Cwd) {
			return bad("program, arguments or folder are missing")
		}
	case ChannelLaunchd, ChannelBrew:
		if r.Label == "" || !filepath.IsAbs(r.Plist) {
			return bad("launchd label or plist is missing")
		}
	case ChannelSystemd:
		if r.Unit == "" {
			return bad("the unit is missing")
		}
	case ChannelApp:
		if !filepath.IsAbs(r.Socket) {
			return bad("the control socket is missing")
		}
	case ChannelUnload:
		if len(r.Models) == 0 {
			return bad("no model is named")
		}
	default:
		return bad("channel %q", r.Channel)
	}
	return nil
}

func validID(id string) bool {
	return id != "" && len(id) < 100 && !strings.HasPrefix(id, ".") &&
		strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// Secret reports whether a variable's name says that its value must not be written down.
func Secret(name string) bool {
	upper := strings.ToUpper(name)
	if upper == "PWD" || upper == "OLDPWD" { // the working folder
		return false
	}
	for _, word := range []string{"KEY", "TOKEN", "SECRET", "PASS", "PWD", "CRED", "AUTH", "COOKIE", "BEARER",
		"PRIVATE", "SIGNATURE", "SESSION", "LICENSE", "DSN"} {
		if strings.Contains(upper, word) {
			return true
		}
	}
	return strings.HasSuffix(upper, "_PAT")
}

// Parse reads one record. Errors: *InvalidError.
func Parse(id string, b []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(b, &r); err != nil {
		return Record{}, &InvalidError{ID: id, Why: err.Error()}
	}
	if r.ID != id {
		return Record{}, &InvalidError{ID: id, Why: "it carries the ID of another record"}
	}
	return r, r.validate()
}

// ErrHeld says that another process holds the lock.
var ErrHeld = errors.New("the lock is held")
