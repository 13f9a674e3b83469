package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"slipway/atomicfile"
	"slipway/fault"
)

// LockSchemaVersion is the version this program writes and the only one it reads.
const LockSchemaVersion = 1

// maxLockFiles and maxFileBytes bound what a lock may ask for: the largest published models have a few hundred files,
// and a hub serves whole files of up to 50 GB without Xet.
const (
	maxLockFiles = 10_000
	maxLockBytes = 16 << 20
	maxFileBytes = 1 << 44
)

// File is one file of a model. Path is relative with slashes (ValidatePath); Size is in bytes, 0 allowed.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 Digest `json:"sha256"`
	Proof  Proof  `json:"proof"`
}

// Lock holds every file's size and SHA-256 at one revision. Invariants, checked by ParseLock and before Marshal writes:
// schema version 1; a valid repository and revision; at least one file; valid paths, sorted by path, no two of which
// are one file on a case-insensitive or normalising file system, none of which is a folder of another; LockedAt in UTC
// with whole seconds, or zero for an embedded lock, whose bytes must not depend on a clock.
type Lock struct {
	SchemaVersion int       `json:"schema_version"`
	Repo          string    `json:"repo"`
	Revision      Revision  `json:"revision"`
	Source        string    `json:"source"` // where sizes and hashes come from, for a human
	LockedAt      time.Time `json:"locked_at,omitzero"`
	Files         []File    `json:"files"`
}

// LockError says what is wrong with a lock; Field is a place such as "files[3].path".
type LockError struct{ Field, Why string }

func (e *LockError) Error() string { return "lock: " + e.Field + ": " + e.Why }

// Fault: see package fault.
func (e *LockError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Integrity, Step: fault.ReplaceLock}
}

// TotalBytes is the sum of all sizes.
func (l Lock) TotalBytes() int64 {
	var total int64
	for _, f := range l.Files {
		total += f.Size
	}
	return total
}

// Unproven is how many files have no proof: only the hub vouches for them.
func (l Lock) Unproven() int {
	n := 0
	for _, f := range l.Files {
		if f.Proof == Unproven {
			n++
		}
	}
	return n
}

// File finds a file by its exact path.
func (l Lock) File(path string) (File, bool) {
	for _, f := range l.Files {
		if f.Path == path {
			return f, true
		}
	}
	return File{}, false
}

// Validate checks the invariants above.
func (l Lock) Validate() error {
	if l.SchemaVersion != LockSchemaVersion {
		return &LockError{"schema_version", fmt.Sprintf("is %d, this program reads %d", l.SchemaVersion,
			LockSchemaVersion)}
	}
	if err := ValidateRepo(l.Repo); err != nil {
		return &LockError{"repo", err.Error()}
	}
	if err := l.Revision.Validate(); err != nil {
		return &LockError{"revision", err.Error()}
	}
	if strings.ContainsFunc(l.Source, func(c rune) bool { return c < 0x20 || c == 0x7f }) {
		return &LockError{"source", "has a control character"}
	}
	if !l.LockedAt.IsZero() && (l.LockedAt.Nanosecond() != 0 || l.LockedAt.Location() != time.UTC) {
		return &LockError{"locked_at", "is not UTC in whole seconds"}
	}
	if len(l.Files) == 0 {
		return &LockError{"files", "is empty"}
	}
	if len(l.Files) > maxLockFiles {
		return &LockError{"files", fmt.Sprintf("has %d entries, at most %d are read", len(l.Files), maxLockFiles)}
	}
	seen := make(map[string]string, len(l.Files))
	for i, f := range l.Files {
		at := func(field string) string { return fmt.Sprintf("files[%d].%s", i, field) }
		if err := ValidatePath(f.Path); err != nil {
			return &LockError{at("path"), err.Error()}
		}
		if f.Size < 0 || f.Size > maxFileBytes {
			return &LockError{at("size"), fmt.Sprintf("is %d, must be from 0 to %d", f.Size, int64(maxFileBytes))}
		}
		if err := f.SHA256.Validate(); err != nil {
			return &LockError{at("sha256"), err.Error()}
		}
		if err := f.Proof.Validate(); err != nil {
			return &LockError{at("proof"), err.Error()}
		}
		folded := foldPath(f.Path)
		if other, taken := seen[folded]; taken {
			if other == f.Path {
				return &LockError{at("path"), fmt.Sprintf("path %q is listed twice", f.Path)}
			}
			return &LockError{at("path"), fmt.Sprintf("paths %q and %q are one file where case does not count", other,
				f.Path)}
		}
		seen[folded] = f.Path
	}
	for i, f := range l.Files {
		folded := foldPath(f.Path)
		for cut := strings.LastIndexByte(folded, '/'); cut > 0; cut = strings.LastIndexByte(folded[:cut], '/') {
			if other, taken := seen[folded[:cut]]; taken {
				return &LockError{fmt.Sprintf("files[%d].path", i), fmt.Sprintf("%q is a file and a folder of %q",
					other, f.Path)}
			}
		}
	}
	if !slices.IsSortedFunc(l.Files, byPath) {
		return &LockError{"files", "is not sorted by path"}
	}
	return nil
}

func byPath(a, b File) int { return strings.Compare(a.Path, b.Path) }

// Marshal writes the canonical form: files sorted by path, fields in the order of the types, two-space indent, one
// newline at the end, no HTML escapes. The same lock gives the same bytes always. l itself is not changed.
func (l Lock) Marshal() ([]byte, error) {
	l.Files = slices.SortedFunc(slices.Values(l.Files), byPath)
	if err := l.Validate(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(l); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// ParseLock reads a lock and refuses unknown and repeated keys, a second document, what editors add, and every hostile
// path. Errors are *LockError or syntax errors of encoding/json.
func ParseLock(data []byte) (Lock, error) {
	if len(data) > maxLockBytes {
		return Lock{}, &LockError{"document", fmt.Sprintf("has %d bytes, at most %d are read", len(data), maxLockBytes)}
	}
	if why := atomicfile.Edited(data); why != "" {
		return Lock{}, &LockError{"document", why}
	}
	if err := refuseRepeatedKeys(data); err != nil {
		return Lock{}, err
	}
	var l Lock
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return Lock{}, fmt.Errorf("lock: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Lock{}, &LockError{"document", "goes on after its end"}
	}
	return l, l.Validate()
}

// refuseRepeatedKeys walks the document once. encoding/json lets the last of two equal keys win and matches keys
// whatever their case, so that two readers of one lock could see two locks.
func refuseRepeatedKeys(data []byte) error {
	type level struct {
		object, wantKey bool
		keys            map[string]bool
	}
	var stack []level
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		top := len(stack) - 1
		if delim, ok := token.(json.Delim); ok && (delim == '}' || delim == ']') {
			stack = stack[:top]
			if top--; top >= 0 && stack[top].object {
				stack[top].wantKey = true
			}
			continue
		}
		if top >= 0 && stack[top].object && stack[top].wantKey {
			key := token.(string)
			if strings.ToLower(key) != key {
				return &LockError{key, "is not a lower-case key"}
			}
			if stack[top].keys[key] {
				return &LockError{key, "is given twice"}
			}
			stack[top].keys[key], stack[top].wantKey = true, false
			continue
		}
		if delim, ok := token.(json.Delim); ok {
			if len(stack) > 8 {
				return &LockError{"document", "is nested too deeply"}
			}
			stack = append(stack, level{object: delim == '{', wantKey: delim == '{', keys: map[string]bool{}})
			continue
		}
		if top >= 0 && stack[top].object {
			stack[top].wantKey = true
		}
	}
}
