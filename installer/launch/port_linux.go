package launch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// portOwner finds who listens on a port: the socket's inode from /proc/net, then the process that has it open. Another
// user's process is not shown to us; then the words say so.
func portOwner(_ context.Context, port int) (int, string) {
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for _, inode := range listeners(string(data), port) {
			inodes["socket:["+inode+"]"] = true
		}
	}
	if len(inodes) == 0 {
		return 0, ""
	}
	fds, err := filepath.Glob("/proc/[0-9]*/fd/[0-9]*")
	if err != nil {
		return 0, ""
	}
	for _, fd := range fds {
		link, err := os.Readlink(fd)
		if err != nil || !inodes[link] {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(fd, "/")[2])
		if err != nil {
			continue
		}
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil {
			program = "a program that is not shown"
		}
		return pid, fmt.Sprintf("%s (pid %d)", strconv.QuoteToGraphic(filepath.Base(program)), pid)
	}
	return 0, "another user's program"
}

// listeners returns the inodes of the sockets that listen on a port, out of /proc/net/tcp: the local address is field 2
// (HEX:PORT), the state field 4 (0A listens), the inode field 10.
func listeners(table string, port int) []string {
	var inodes []string
	suffix := fmt.Sprintf(":%04X", port)
	for _, line := range strings.Split(table, "\n") {
		f := strings.Fields(line)
		if len(f) >= 10 && f[3] == "0A" && strings.HasSuffix(f[1], suffix) {
			inodes = append(inodes, f[9])
		}
	}
	return inodes
}
