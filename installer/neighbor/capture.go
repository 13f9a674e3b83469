package neighbor

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"slipway/installer/neighbor/record"
	"slipway/installer/process"
)

// capture decides how a server would be stopped and brought back: the channel, or the reason why not. The gentlest way
// first.
func (s *System) capture(server *Server) (channel record.Channel, refusal string) {
	k := server.kind
	if k.unload != nil {
		if len(server.loaded) == 0 {
			return "", "it holds no model, so there is nothing to stop"
		}
		return record.ChannelUnload, ""
	}
	switch server.Starter.Type {
	case "launchd", "brew":
		if server.Starter.Plist == "" {
			return "", "launchd keeps it running under the label " + plain(server.Starter.Name) + ", and does not " +
				"say from which file: stop it with `launchctl bootout " + s.domain() + "/" +
				plain(server.Starter.Name) + "`"
		}
		if server.Starter.Type == "brew" {
			return record.ChannelBrew, ""
		}
		return record.ChannelLaunchd, ""
	case "systemd":
		if server.Starter.system {
			return "", "systemd keeps it running as " + plain(server.Starter.Name) + ", which only root may stop: " +
				"`sudo systemctl stop " + plain(server.Starter.Name) + "`"
		}
		if server.Starter.shared {
			return "", "it runs inside the systemd unit " + plain(server.Starter.Name) + ", whose main process is " +
				"another one: stop it where it was started, and start it there afterwards"
		}
		if s.Systemctl == "" {
			return "", "systemd keeps it running as " + plain(server.Starter.Name) + ", and systemctl is not there"
		}
		return record.ChannelSystemd, ""
	case "app":
		if k.socket != "" {
			return record.ChannelApp, ""
		}
		return "", "it belongs to " + plain(filepath.Base(server.Starter.Name)) + ", which would start it again: " +
			"quit it there, and open it again afterwards"
	case "supervisor":
		return "", "it was started by " + plain(server.Starter.Name) + " (pid " + strconv.Itoa(server.Starter.PID) +
			"), which may start it again: stop it there, and start it there afterwards"
	}
	_, problem := replay(server.details)
	if problem != "" {
		return "", problem
	}
	if server.details.Cwd == "" && k.needsFolder {
		return "", "its working folder cannot be read, and it needs it"
	}
	if server.details.Cwd == "" && folderNeeded(server.details, k) {
		return "", "its working folder is gone or cannot be read, and its arguments depend on it"
	}
	if server.details.Env == nil {
		return "", "its environment cannot be read"
	}
	return record.ChannelArgv, ""
}

// losses says what of a server cannot be kept for its return, and what would differ without harm. A server with losses
// is stopped only where a person has accepted them. Names only: values may be secrets.
func (s *System) losses(server *Server) (losses, missing []string) {
	if server.Channel == record.ChannelUnload && server.kind.losses != nil {
		return server.kind.losses(server.loaded), nil
	}
	if server.Channel != record.ChannelArgv {
		return nil, nil // its manager starts it with what the manager knows
	}
	d := server.details
	_, names := splitEnvironment(d.Env)
	missed, harmless := withoutValue(names)
	if len(missed) > 0 {
		losses = append(losses, "the values of "+strings.Join(missed, ", ")+" are not written down: the small "+
			"watcher keeps them in memory, and without it they are lost")
	}
	if secrets := secretArguments(d.Argv); len(secrets) > 0 {
		losses = append(losses, "its command line holds what looks like a secret ("+strings.Join(secrets,
			", ")+"), which slipway's record would contain, readable only by you, until it runs again")
	}
	if d.Cwd == "" {
		losses = append(losses, "its working folder is gone or cannot be read, so it would start in your home folder")
	}
	missing = append(missing, "it has no terminal, and its output goes to a log file in slipway's home")
	if server.Home != "" { // it never had a terminal, and has its own log
		missing = nil
	}
	if len(harmless) > 0 {
		missing = append(missing, "without the watcher also no "+strings.Join(harmless, ", "))
	}
	return losses, missing
}

// replay finds the program to execute so that the same server starts, or says why that is not possible.
func replay(d process.Details) (program, problem string) {
	if len(d.Argv) == 0 {
		return "", "its arguments cannot be read, so it could not be started again"
	}
	exe, err := os.Stat(d.Exe)
	if err != nil || inode(exe) != d.ExeInode {
		return "", "its program file was replaced or removed since it started, so it could not be started " +
			"again as it is"
	}
	c := command{exe: d.Exe, argv: d.Argv}
	if c.interpreted() || strings.HasPrefix(strings.ToLower(filepath.Base(d.Exe)), "python") {
		// A script with a #! line is started best as such: framework Python replaces argv[0] by a binary that has
		// forgotten its virtual environment.
		if len(d.Argv) > 1 && filepath.IsAbs(d.Argv[1]) && scriptWithInterpreter(d.Argv[1]) {
			return d.Argv[1], ""
		}
		if strings.Contains(d.Exe, "Python.app/Contents/MacOS/") {
			for _, entry := range d.Env {
				if folder, ok := strings.CutPrefix(entry, "VIRTUAL_ENV="); ok &&
					executable(filepath.Join(folder, "bin", "python")) {
					return filepath.Join(folder, "bin", "python"), ""
				}
			}
			return "", "it runs under macOS's framework Python, which hides the virtual environment, so it could " +
				"not be started again exactly"
		}
	}
	for _, candidate := range candidates(d) {
		if info, err := os.Stat(candidate); err == nil && inode(info) == d.ExeInode {
			return candidate, ""
		}
	}
	if filepath.Base(d.Argv[0]) == filepath.Base(d.Exe) {
		return d.Exe, ""
	}
	return "", "its process title hides how it was started, so it could not be started again"
}

// candidates are the paths that argv[0] may name. The first is the best: a virtual environment's python is a link
// whose own path matters.
func candidates(d process.Details) []string {
	name := d.Argv[0]
	switch {
	case filepath.IsAbs(name):
		return []string{name}
	case strings.Contains(name, "/"):
		return []string{filepath.Join(d.Cwd, name)}
	}
	var list []string
	for _, entry := range d.Env {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			for _, folder := range filepath.SplitList(path) {
				if filepath.IsAbs(folder) {
					list = append(list, filepath.Join(folder, name))
				}
			}
		}
	}
	return list
}

// replayArgv is the argument list for the program that replay chose.
func replayArgv(d process.Details, program string) []string {
	if len(d.Argv) > 1 && program == d.Argv[1] && program != d.Argv[0] {
		return d.Argv[1:]
	}
	return d.Argv
}

func scriptWithInterpreter(path string) bool {
	if !executable(path) {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 2)
	n, _ := f.Read(head)
	return n == 2 && bytes.Equal(head, []byte("#!"))
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

func inode(info os.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}

// folderNeeded reports whether an argument, or the value after its "=", names something in the working folder.
func folderNeeded(d process.Details, k *kind) bool {
	if k.needsFolder || len(d.Argv) > 0 && strings.Contains(d.Argv[0], "/") && !filepath.IsAbs(d.Argv[0]) {
		return true
	}
	for i, arg := range d.Argv {
		if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
			arg = value
		}
		if i == 0 || arg == "" || filepath.IsAbs(arg) {
			continue
		}
		if strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../") {
			return true
		}
		if d.Cwd != "" && filepath.IsLocal(arg) {
			if _, err := os.Lstat(filepath.Join(d.Cwd, arg)); err == nil {
				return true
			}
		}
	}
	return false
}
