package main

import (
	"context"
	"io"
	"os"
	"time"
)

// logVariable names the file that the launcher made our standard error, so that a detached server can bound its own
// log. The launcher sets it only where it wants that.
const (
	logVariable   = "SLIPWAY_SERVER_LOG"
	logLimitBytes = 10 << 20
	logLookEvery  = 10 * time.Second
)

// boundLog cuts the log whenever it is too long, until the context ends.
func boundLog(ctx context.Context, name string, every time.Duration, limitBytes int64) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
			cutLog(os.Stderr, name, limitBytes)
		}
	}
}

// cutLog moves a log of more than limit bytes to name.1 and continues with an empty one, if name is the file that
// writer appends to; otherwise it touches nothing. The file stays the same one, because writer has it open; a line that
// is written in between may be lost. Where the copy fails (no space, above all) the log is cut all the same.
func cutLog(writer *os.File, name string, limitBytes int64) error {
	ours, err := writer.Stat()
	if err != nil || !ours.Mode().IsRegular() || ours.Size() <= limitBytes {
		return err
	}
	log, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer log.Close()
	if found, err := log.Stat(); err != nil || !os.SameFile(found, ours) {
		return err
	}
	copyErr := copyLog(log, name)
	if err := log.Truncate(0); err != nil {
		return err
	}
	return copyErr
}

// copyLog renames the copy into place, so that a link at that name is replaced and not followed.
func copyLog(log io.Reader, name string) error {
	temporary := name + ".cut"
	os.Remove(temporary)
	to, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, log)
	if closeErr := to.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temporary, name+".1")
	}
	if err != nil {
		os.Remove(temporary)
	}
	return err
}
