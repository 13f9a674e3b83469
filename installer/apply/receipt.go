package apply

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"slipway/atomicfile"
	"slipway/fault"
	"slipway/installer/plan"
)

// receiptsDir holds one receipt a plan digest, below the home.
const receiptsDir = "state/receipts"

// Item is one thing that an action made.
type Item struct {
	Kind   string `json:"kind"`             // "folder", "file" or "process"
	Path   string `json:"path"`             // below the home, slashes; of a process: its program
	SHA256 string `json:"sha256,omitempty"` // of a file whose bytes do not change
	Bytes  int64  `json:"bytes,omitempty"`
	PID    int    `json:"pid,omitempty"` // of a process
}

// Item kinds.
const (
	FolderItem  = "folder"
	FileItem    = "file"
	ProcessItem = "process"
)

// Done is one action as it was carried out.
type Done struct {
	ID       string            `json:"id"`
	Sentence string            `json:"sentence"`
	Undo     string            `json:"undo"`
	Items    []Item            `json:"items"`
	Notes    map[string]string `json:"notes,omitempty"` // tool versions, output hashes, checks
	Time     string            `json:"time"`
}

// Receipt says what was done under one digest, with what, when, and what undoes it. Complete is false when the plan was
// abandoned for another one; its items are listed all the same, so that uninstall finds them.
type Receipt struct {
	SchemaVersion int            `json:"schema_version"`
	Digest        string         `json:"digest"`
	Complete      bool           `json:"complete"`
	Version       string         `json:"version"` // of slipway
	Decisions     plan.Decisions `json:"decisions"`
	Actions       []Done         `json:"actions"`
	Time          string         `json:"time"`
}

// ReceiptPath is the path of the receipt of a digest, below the home.
func ReceiptPath(digest string) string {
	return path.Join(receiptsDir, strings.TrimPrefix(digest, "sha256:")[:16]+".json")
}

var receiptName = whole(`[0-9a-f]{16}\.json`)

func (h *Home) writeReceipt(r Receipt) error {
	if err := h.Root.Mkdir(receiptsDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return err
	}
	return atomicfile.Replace(h.Root, ReceiptPath(r.Digest), out.Bytes(), 0o600)
}

// Receipt reads the receipt of a digest. Errors: fs.ErrNotExist, *ReceiptError.
func (h *Home) Receipt(digest string) (Receipt, error) {
	if len(strings.TrimPrefix(digest, "sha256:")) < 16 {
		return Receipt{}, fs.ErrNotExist
	}
	return h.readReceipt(ReceiptPath(digest))
}

// ReceiptError: a receipt cannot be used. Set-up sets it aside and writes a new one.
type ReceiptError struct {
	Home, Path string // Path is below Home
	Why        string
}

func (e *ReceiptError) Error() string { return e.Path + " is damaged: " + e.Why }

// Fault: see package fault.
func (e *ReceiptError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Integrity, Step: fault.RewriteReceipt}
}

func (h *Home) readReceipt(name string) (Receipt, error) {
	data, err := h.Root.ReadFile(name)
	if err != nil {
		return Receipt{}, err
	}
	var r Receipt
	why := atomicfile.Edited(data)
	if err := json.Unmarshal(data, &r); err != nil && why == "" {
		why = err.Error()
	}
	if why == "" && (r.Digest == "" || ReceiptPath(r.Digest) != name) {
		why = "it is not the receipt that belongs there"
	}
	if why != "" {
		return Receipt{}, &ReceiptError{h.Path, name, why}
	}
	return r, nil
}

// setAsideReceipts moves damaged receipts out of the way, and says so. What they listed is known no more: uninstall
// leaves it and names it.
func (h *Home) setAsideReceipts(report func(Event)) error {
	for {
		_, err := h.Receipts()
		damaged, ok := errors.AsType[*ReceiptError](err)
		if !ok {
			return err
		}
		name, err := setAside(h, damaged.Path, damaged.Path+".damaged-")
		if err != nil {
			return err
		}
		report(Event{Kind: "note", Text: fmt.Sprintf("%v. It is %s now, and a new receipt is written.", damaged, name)})
	}
}

// Receipts reads all, oldest first. Errors: *ReceiptError.
func (h *Home) Receipts() ([]Receipt, error) {
	names, err := readNames(h.Root, receiptsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all []Receipt
	for _, name := range names {
		if !receiptName.MatchString(name) {
			continue // not ours
		}
		r, err := h.readReceipt(path.Join(receiptsDir, name))
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b Receipt) int { return strings.Compare(a.Time, b.Time) })
	return all, nil
}
