package launch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slipway/termtext"
	"strings"
)

// LogLimitBytes is when a log is rotated: at every start, all the time while a terminal is attached, and by the server
// itself, which learns the file's name by logVariable.
//
// The server's log is opened for appending and handed to the server as its standard output. Rotation copies and cuts
// it, because the server keeps the file open; a line that is written in between may be lost, the file never grows
// without bound.
const (
	LogLimitBytes = 10 << 20
	logVariable   = "SLIPWAY_SERVER_LOG"
	logsKept      = 3 // server.log.1 is the newest
)

// OpenLog opens the server's log for appending, rotated before.
func OpenLog(root *os.Root) (*os.File, error) {
	if err := RotateLog(root, LogLimitBytes); err != nil {
		return nil, err
	}
	return root.OpenFile(LogPath, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
}

// RotateLog moves a log of more than limit bytes one name on: server.log to server.log.1, and so on; the oldest goes.
func RotateLog(root *os.Root, limitBytes int64) error {
	info, err := root.Stat(LogPath)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() <= limitBytes {
		return nil
	}
	if err != nil {
		return err
	}
	for n := logsKept - 1; n >= 1; n-- {
		err := root.Rename(rotated(n), rotated(n+1))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	from, err := root.OpenFile(LogPath, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := root.OpenFile(rotated(1), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer to.Close()
	if _, err := io.Copy(to, from); err != nil {
		return err
	}
	return from.Truncate(0)
}

// LogNames lists every name that a log may have, below the home.
func LogNames() []string {
	names := []string{LogPath, LogPath + ".cut"} // the second is the server's, while it cuts its log
	for n := 1; n <= logsKept; n++ {
		names = append(names, rotated(n))
	}
	return names
}

func rotated(n int) string { return fmt.Sprintf("%s.%d", LogPath, n) }

// LastLines returns at most n last lines of the log from offset on, control characters made visible.
func LastLines(root *os.Root, offset int64, n int) []string {
	f, err := root.Open(LogPath)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	const tailBytes = 64 << 10
	if offset > info.Size() {
		offset = 0
	}
	offset = max(offset, info.Size()-tailBytes)
	data, err := io.ReadAll(io.NewSectionReader(f, offset, tailBytes))
	if err != nil {
		return nil
	}
	text := strings.TrimRight(string(data), "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	for i := range lines {
		lines[i] = termtext.Line(lines[i])
	}
	return lines
}

// crashLines are the n lines that say why a server ended: those from Go's own report of a fault on, whose cause comes
// before the stacks, else the last ones.
func crashLines(root *os.Root, offset int64, n int) []string {
	lines := LastLines(root, offset, 1000)
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], "panic: ") || strings.HasPrefix(lines[i], "fatal error: ") {
			return lines[i:min(i+n, len(lines))]
		}
	}
	return lines[max(0, len(lines)-n):]
}
