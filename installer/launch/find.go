package launch

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"slipway/installer/process"
)

// found is a living server of a home that was recognised without its record.
type found struct {
	record Record
	argv   []string
}

// findServer looks for the server of this home among the processes, for when its record is lost, damaged, or names a
// program file that was replaced or renamed since. A process is our server when it was started as one (serve with a
// launch id) and either has the lock of this home open, which only our launcher passes on, or runs a program from this
// home's engines.
func findServer(ctx context.Context, root *os.Root, homePath string) (found, bool) {
	var holders []int
	if lives(root) {
		if lock, err := root.Stat(aliveLock); err == nil {
			holders = Users(ctx, filepath.Join(homePath, filepath.FromSlash(aliveLock)), lock)
		}
	}
	for _, pid := range holders {
		if f, ok := asServer(pid, homePath); ok {
			return f, true
		}
	}
	pids, err := process.PIDs()
	if err != nil {
		return found{}, false
	}
	engines := filepath.Join(homePath, "engines") + string(filepath.Separator)
	for _, pid := range pids {
		id, err := process.Observe(pid)
		if err != nil || !strings.HasPrefix(id.Exe, engines) {
			continue
		}
		if f, ok := asServer(pid, homePath); ok {
			return f, true
		}
	}
	return found{}, false
}

// asServer reads a process as a server of ours, from what our launcher started it with.
func asServer(pid int, homePath string) (found, bool) {
	d, err := process.Look(pid)
	if err != nil || len(d.Argv) < 2 || d.Argv[1] != "serve" || d.UID >= 0 && d.UID != os.Getuid() {
		return found{}, false
	}
	flags := map[string]string{}
	for i := 2; i+1 < len(d.Argv); i += 2 {
		flags[strings.TrimPrefix(d.Argv[i], "--")] = d.Argv[i+1]
	}
	number := func(name string) int { n, _ := strconv.Atoi(flags[name]); return n }
	port := number("port")
	if flags["launch-id"] == "" || port < 1 || port > 65535 {
		return found{}, false
	}
	return found{argv: d.Argv, record: Record{LaunchID: flags["launch-id"], Process: d.Identity,
		Started: d.Started.UTC(),
		Settings: Settings{Program: below(homePath, d.Exe), ModelFolder: below(homePath, flags["model"]),
			ModelID:  flags["model-id"],
			Revision: flags["revision"], Device: flags["device"], Host: flags["host"], Port: port,
			MonitorPort:  number("monitor-port"),
			WindowTokens: number("window"), Parallel: number("parallel")}}}, true
}

func below(homePath, name string) string {
	rel, err := filepath.Rel(homePath, name)
	if err != nil {
		return name
	}
	return filepath.ToSlash(rel)
}

// Serves reports whether the living server is one that these settings would start. A server whose record was lost is
// judged by what it was started with and by the file that it runs.
func (s Status) Serves(homePath string, want Settings) bool {
	if s.argv == nil {
		return s.Record.Settings == want
	}
	program, err := os.Stat(filepath.Join(homePath, filepath.FromSlash(want.Program)))
	return err == nil && inode(program) == s.Record.Process.ExeInode && s.Record.Process.ExeInode != 0 &&
		slices.Equal(s.argv[1:], arguments(want, homePath, s.Record.LaunchID))
}
