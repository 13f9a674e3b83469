package apply

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"slipway/atomicfile"
	"slipway/fault"
	"slipway/installer/plan"
)

// journalPath is the journal of the plan that is being applied, below the home. It exists only while a plan is open.
const journalPath = "state/journal.ndjson"

// The journal is one JSON record a line, only ever appended, each synced before the step that follows it. Seq counts
// from 1 without a gap; Sum is the hash of the record without Sum, chained to the previous one, so that a line that was
// changed, lost or moved is seen. A last line that is torn was never acted upon and is cut off.
type record struct {
	Seq    int         `json:"seq"`
	Event  recordEvent `json:"event"`
	Digest string      `json:"digest"`
	Action string      `json:"action,omitempty"`
	Paths  []string    `json:"paths,omitempty"` // of an intent: what may come to be
	Items  []Item      `json:"items,omitempty"` // of a result: what is there
	Time   string      `json:"time"`
	Sum    string      `json:"sum"`

	// Of the beginning; journals of earlier versions lack them.
	Request *plan.Request `json:"request,omitempty"`
	Command []string      `json:"command,omitempty"`
}

// Begun is a plan that was begun and not finished.
type Begun struct {
	Digest  string
	Request *plan.Request // nil: an earlier version began it
	// Command continues it: our arguments without the home. nil: an earlier version began it.
	Command []string
}

type recordEvent string

const (
	planBegun    recordEvent = "begin"
	actionIntent recordEvent = "intent"
	actionResult recordEvent = "result"
	planEnded    recordEvent = "end"
)

// JournalError says that the journal is damaged. It is left as it is.
type JournalError struct {
	Path string
	Line int
	Why  string
}

func (e *JournalError) Error() string {
	return fmt.Sprintf("%s is damaged at line %d: %s", e.Path, e.Line, e.Why)
}

// Fault: see package fault.
func (e *JournalError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Integrity, Step: fault.SetAsideJournal}
}

// Journal is an open journal.
type Journal struct {
	home    *Home
	file    *os.File
	records []record
	now     func() string
	kill    killPoint
}

// Open reads which plan is open; one without a digest when none is. A damaged journal is a *JournalError.
func Open(home *Home) (Begun, error) {
	records, _, err := readJournal(home)
	if err != nil || len(records) == 0 {
		return Begun{}, err
	}
	return Begun{records[0].Digest, records[0].Request, records[0].Command}, nil
}

// OpenDigest is the digest of the open plan, "" when none is. A damaged journal is a *JournalError.
func OpenDigest(home *Home) (string, error) {
	begun, err := Open(home)
	return begun.Digest, err
}

// OpenPaths lists what the open plan may be making, below the home; none when no plan is open. Errors: *JournalError.
func OpenPaths(home *Home) ([]string, error) {
	records, _, err := readJournal(home)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, r := range records {
		paths = append(paths, r.Paths...)
	}
	return paths, nil
}

// openJournal continues the journal of this plan or starts one. A journal of another digest is returned as settled:
// its items must go into a receipt before it is dropped.
func openJournal(home *Home, plan Begun, now func() string) (j *Journal, other []record, err error) {
	records, whole, err := readJournal(home)
	if err != nil {
		return nil, nil, err
	}
	f, err := home.Root.OpenFile(journalPath, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	if err := f.Truncate(whole); err != nil { // the torn last line, if any
		f.Close()
		return nil, nil, err
	}
	j = &Journal{home: home, file: f, records: records, now: now, kill: killPointFromEnv()}
	if len(records) > 0 && records[0].Digest != plan.Digest {
		return j, records, nil
	}
	if len(records) == 0 {
		if err := atomicfile.SyncFolder(home.Root, "state"); err != nil {
			f.Close()
			return nil, nil, err
		}
		return j, nil, j.begin(plan)
	}
	return j, nil, nil
}

func (j *Journal) begin(plan Begun) error {
	return j.append(record{Event: planBegun, Digest: plan.Digest, Request: plan.Request, Command: plan.Command})
}

// restart drops the records of another plan, whose items are in a receipt by now, and begins this one.
func (j *Journal) restart(plan Begun) error {
	if err := j.file.Truncate(0); err != nil {
		return err
	}
	j.records = nil
	return j.begin(plan)
}

func (j *Journal) intent(a plan.Action) error {
	return j.append(record{Event: actionIntent, Digest: j.records[0].Digest, Action: a.ID, Paths: a.Touches.Paths})
}

func (j *Journal) result(a plan.Action, items []Item) error {
	return j.append(record{Event: actionResult, Digest: j.records[0].Digest, Action: a.ID, Items: items})
}

// finished reports whether the journal has a result of this action that is newer than any intent.
func (j *Journal) finished(a plan.Action) bool {
	done := false
	for _, r := range j.records {
		if r.Action == a.ID {
			done = r.Event == actionResult
		}
	}
	return done
}

// end closes the plan and removes the journal. The receipt is on disk by now.
func (j *Journal) end() error {
	if err := j.append(record{Event: planEnded, Digest: j.records[0].Digest}); err != nil {
		return err
	}
	j.file.Close()
	if err := j.home.Root.Remove(journalPath); err != nil {
		return err
	}
	return atomicfile.SyncFolder(j.home.Root, "state")
}

func (j *Journal) close() { j.file.Close() }

func (j *Journal) append(r record) error {
	r.Seq, r.Time = len(j.records)+1, j.now()
	prev := ""
	if len(j.records) > 0 {
		prev = j.records[len(j.records)-1].Sum
	}
	r.Sum = sumOf(prev, r)
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	j.kill.before(j.file, line)
	if _, err := j.file.Write(line); err != nil {
		return err
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	j.kill.after()
	j.records = append(j.records, r)
	return nil
}

func sumOf(prev string, r record) string {
	r.Sum = prev
	data, err := json.Marshal(r)
	if err != nil {
		panic("apply: a journal record that cannot be written: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// readJournal returns the whole records and how many bytes they take; the rest is a torn last line.
func readJournal(home *Home) ([]record, int64, error) {
	data, err := home.Root.ReadFile(journalPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	var records []record
	var whole int64
	prev := ""
	if why := atomicfile.Edited(data); why != "" {
		return nil, 0, &JournalError{Path: journalPath, Line: 1, Why: why}
	}
	for len(data) > 0 {
		damaged := func(why string) error {
			return &JournalError{Path: journalPath, Line: len(records) + 1, Why: why}
		}
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			break // torn: never synced, so nothing was done on its word
		}
		var r record
		dec := json.NewDecoder(bytes.NewReader(data[:end]))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&r); err != nil {
			return nil, 0, damaged("not a record")
		}
		switch {
		case r.Seq != len(records)+1:
			return nil, 0, damaged(fmt.Sprintf("record %d is where %d should be", r.Seq, len(records)+1))
		case r.Sum != sumOf(prev, r):
			return nil, 0, damaged("its checksum does not match")
		case (r.Event == planBegun) != (r.Seq == 1):
			return nil, 0, damaged("it does not begin with the beginning")
		}
		prev = r.Sum
		records = append(records, r)
		whole += int64(end + 1)
		data = data[end+1:]
	}
	if n := len(records); n > 0 && records[n-1].Event == planEnded {
		// Killed between the last record and the removal: the plan is closed, only the file was left.
		return nil, 0, nil
	}
	return records, whole, nil
}

// SetAsideJournal moves a damaged journal out of the way and returns its new name below the home.
func SetAsideJournal(home *Home) (string, error) {
	return setAside(home, journalPath, "state/journal.damaged-")
}

// setAside renames a file to the first free name of a prefix and a number.
func setAside(home *Home, from, prefix string) (string, error) {
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s%d", prefix, n)
		if _, err := home.Root.Lstat(name); err == nil {
			continue
		}
		return name, home.Root.Rename(from, name)
	}
}
