package store

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// The file beside a partial file that is locked also says when a write of ours to it last began: before each write, so
// that a killed run has said it. A partial file that changed later than that was changed by another program, and a
// saved hash of its beginning does not speak of what is there now. Two lines: "pid N", padded, and nanoseconds since
// 1970.
const (
	holderBytes    = 32
	lastWriteBytes = 20
)

// writeDelay is how long after that moment the file system may stamp the write: the time between two system calls of
// one thread, with room for a machine that has more to do than it has cores. Who changes the file within it is not
// seen.
const writeDelay = 50 * time.Millisecond

// readHolder reads both lines; lastWrite is 0 when it is not there.
func readHolder(f *os.File) (holder string, lastWrite int64) {
	data, _ := io.ReadAll(io.NewSectionReader(f, 0, holderBytes+lastWriteBytes))
	line, _, _ := strings.Cut(string(data), "\n")
	if len(data) > holderBytes {
		lastWrite, _ = strconv.ParseInt(string(data[holderBytes:]), 10, 64)
	}
	return strings.TrimSpace(line), lastWrite
}

// writeHolder names this process and keeps what is known of the last write.
func writeHolder(f *os.File, lastWrite int64) {
	f.Truncate(0)
	fmt.Fprintf(io.NewOffsetWriter(f, 0), "%-*s\n%0*d", holderBytes-1, fmt.Sprintf("pid %d", os.Getpid()),
		lastWriteBytes,
		lastWrite)
}

// willWrite notes that a write begins now. The caller holds the mutex from here to the end of that write: on one file
// the system lets one write wait for the other, and a write that waits is stamped late.
func (p *Partial) willWrite() {
	p.lastWrite = time.Now().UnixNano()
	if p.lock != nil {
		var digits [lastWriteBytes]byte
		at := p.lastWrite
		for i := len(digits) - 1; i >= 0; i-- {
			digits[i] = byte('0' + at%10)
			at /= 10
		}
		p.lock.WriteAt(digits[:], holderBytes) // failing costs one more hash, never a wrong answer
	}
}

// Altered reports whether the partial file changed later than a write of ours can explain: another program wrote into
// it, or the power failed, which may lose our own note. What was hashed of it must be hashed again.
func (p *Partial) Altered() bool {
	p.writing.Lock()
	defer p.writing.Unlock()
	info, err := p.data.Stat()
	return err != nil || changedNs(info) > p.lastWrite+writeDelay.Nanoseconds()
}

// Acknowledge takes the partial file as it is now for ours. The caller hashes all of it again.
func (p *Partial) Acknowledge() {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.willWrite()
}
