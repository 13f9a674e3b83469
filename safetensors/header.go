package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"
	"sort"
)

// The safetensors format: 8 bytes little-endian header length n; n bytes of JSON, an object from tensor name to
// {"dtype","shape","data_offsets":[begin,end)}, with an optional "__metadata__" of strings; then the data, which
// offsets count from. Invariants checked here: end-begin = elements · size of the type, offsets inside the file, no two
// tensors overlap, no name twice. Offsets may have any alignment: readers go through bytes.

// MaxHeaderBytes bounds the JSON header. The reference reader allows 100 MB; the largest header met in this family (an
// unsharded 27B with vision) is under 1 MB, so that 25 MB is already a damaged or hostile file.
const MaxHeaderBytes = 25 << 20

// maxRank bounds a tensor's dimensions: the family has at most 5 (vision patch embedding).
const maxRank = 8

// Entry is one tensor of a header. Begin and End are byte offsets in the file (not in its data section).
type Entry struct {
	Name       string
	DType      DType
	Shape      []int64
	Begin, End int64
}

// ReadHeader parses the start of a safetensors file of size bytes, called file in errors, which are *MisfitError. b
// must hold at least the header (all of the file in the mapped case). Entries come in order of their offsets. It never
// panics, whatever b holds.
func ReadHeader(file string, b []byte, size int64) ([]Entry, error) {
	if len(b) < 8 || size < 8 {
		return nil, misfit(file, "", fmt.Sprintf("%d bytes", size), "a safetensors file (at least 8 bytes)")
	}
	n := binary.LittleEndian.Uint64(b)
	if n > MaxHeaderBytes {
		return nil, misfit(file, "", fmt.Sprintf("a header of %d bytes", n),
			fmt.Sprintf("at most %d", int64(MaxHeaderBytes)))
	}
	if int64(n) > size-8 || int64(n) > int64(len(b)-8) {
		return nil, misfit(file, "", fmt.Sprintf("%d bytes", size),
			fmt.Sprintf("a header of %d bytes: the file is truncated", n))
	}
	dataStart := 8 + int64(n)
	entries, err := parseEntries(file, b[8:dataStart])
	if err != nil {
		return nil, err
	}
	dataSize := size - dataStart
	for i := range entries {
		e := &entries[i]
		if err := checkExtent(file, e, dataSize); err != nil {
			return nil, err
		}
		e.Begin += dataStart
		e.End += dataStart
	}
	sort.SliceStable(entries, func(i, j int) bool { return entries[i].Begin < entries[j].Begin })
	var last *Entry // the non-empty tensor that reaches furthest so far
	for i := range entries {
		e := &entries[i]
		if e.Begin == e.End {
			continue
		}
		if last != nil && e.Begin < last.End {
			return nil, misfit(file, e.Name, fmt.Sprintf("bytes [%d,%d), which overlap %s", e.Begin, e.End, last.Name),
				"bytes of its own")
		}
		last = e
	}
	return entries, nil
}

// parseEntries reads the JSON object token by token, because a map would hide a name that occurs twice.
func parseEntries(file string, text []byte) ([]Entry, error) {
	bad := func(tensor string, err error) error {
		return misfit(file, tensor, "a header that is not valid: "+err.Error(), "a JSON object of tensors")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil {
		return nil, bad("", err)
	} else if t != json.Delim('{') {
		return nil, bad("", fmt.Errorf("it begins with %v", t))
	}
	var entries []Entry
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, bad("", err)
		}
		name, _ := t.(string)
		if seen[name] {
			return nil, misfit(file, name, "the name twice", "one tensor of a name")
		}
		seen[name] = true
		if name == "__metadata__" {
			var skip json.RawMessage
			if err := d.Decode(&skip); err != nil {
				return nil, bad(name, err)
			}
			continue
		}
		var raw struct {
			DType   DType   `json:"dtype"`
			Shape   []int64 `json:"shape"`
			Offsets []int64 `json:"data_offsets"`
		}
		if err := d.Decode(&raw); err != nil {
			return nil, bad(name, err)
		}
		if len(raw.Offsets) != 2 {
			return nil, misfit(file, name, fmt.Sprintf("%d data offsets", len(raw.Offsets)), "2")
		}
		entries = append(entries, Entry{Name: name, DType: raw.DType, Shape: raw.Shape, Begin: raw.Offsets[0],
			End: raw.Offsets[1]})
	}
	if _, err := d.Token(); err != nil {
		return nil, bad("", err)
	}
	if rest := bytes.TrimRight(text[d.InputOffset():], " \x00\n\t\r"); len(rest) != 0 {
		return nil, bad("", fmt.Errorf("%d bytes follow the object", len(rest)))
	}
	return entries, nil
}

// checkExtent checks one entry against its own shape and the size of the data section.
func checkExtent(file string, e *Entry, dataSize int64) error {
	size, known := bytesOf[e.DType]
	if !known {
		return misfit(file, e.Name, fmt.Sprintf("dtype %q", e.DType), "a safetensors type of whole bytes")
	}
	if len(e.Shape) > maxRank {
		return misfit(file, e.Name, fmt.Sprintf("%d dimensions", len(e.Shape)), fmt.Sprintf("at most %d", maxRank))
	}
	total := uint64(size)
	for _, dim := range e.Shape {
		if dim < 0 {
			return misfit(file, e.Name, fmt.Sprintf("shape %v", e.Shape), "no negative dimension")
		}
		high, low := bits.Mul64(total, uint64(dim))
		if high != 0 || low > 1<<62 {
			return misfit(file, e.Name, fmt.Sprintf("shape %v", e.Shape), "a size that fits 62 bits")
		}
		total = low
	}
	if e.Begin < 0 || e.End < e.Begin {
		return misfit(file, e.Name, fmt.Sprintf("offsets [%d,%d)", e.Begin, e.End), "begin <= end, both from 0")
	}
	if uint64(e.End-e.Begin) != total {
		return misfit(file, e.Name, fmt.Sprintf("%d bytes", e.End-e.Begin), fmt.Sprintf("%d for %s %v", total, e.DType,
			e.Shape))
	}
	if e.End > dataSize {
		return misfit(file, e.Name, fmt.Sprintf("an end at %d of %d data bytes", e.End, dataSize),
			"an end inside the file: it is truncated or the header is wrong")
	}
	return nil
}
