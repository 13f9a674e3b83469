package launch

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Users are the processes that have this file open, as lsof says. No answer means unknown.
func Users(ctx context.Context, path string, _ os.FileInfo) []int {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/usr/sbin/lsof", "-nP", "-Fp", "--", path)
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/bin:/bin:/usr/sbin:/sbin"}
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	var pids []int
	for _, line := range strings.Split(string(out), "\n") {
		if number, ok := strings.CutPrefix(line, "p"); ok {
			if pid, err := strconv.Atoi(number); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
