package launch

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Users are the processes that have this file open. /proc/locks is no help: it names the launcher, which took the
// lock and has ended.
func Users(_ context.Context, path string, lock os.FileInfo) []int {
	fds, err := filepath.Glob("/proc/[0-9]*/fd/[0-9]*")
	if err != nil {
		return nil
	}
	var pids []int
	for _, fd := range fds {
		link, err := os.Readlink(fd)
		if err != nil || filepath.Base(link) != filepath.Base(path) {
			continue
		}
		if info, err := os.Stat(fd); err != nil || !os.SameFile(info, lock) {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(fd, "/")[2]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
