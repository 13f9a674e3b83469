package disk

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"

	"slipway/engine/memory"
)

// Version of both file formats. A reader takes its own version only.
const Version = 1

// Magic opens a file, eight bytes.
const (
	pointMagic = "slipwayP"
	pageMagic  = "slipwayK"
)

// headBytes is magic, header length and header checksum; the header's JSON follows, then white space up to align.
const headBytes = 16

// Alignments. Pages have one size, so that their number bounds their bytes.
const (
	pointAlign  = 64
	pageHeadLen = 512
	mostHeader  = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// section is a part of a file after its header, in order, without gaps.
type section struct {
	Name  string `json:"name"`
	Key   string `json:"key,omitempty"`   // of a draft's section: what must be equal for its use
	First int    `json:"first,omitempty"` // of "mtp": the slot that it begins with
	Bytes int64  `json:"bytes"`
	CRC   uint32 `json:"crc32c"`
}

// pointHeader describes a point's file. Sections: "ids" u32 each; "state" as the device gives it; "tail" the positions
// of the last page that is not whole; for a draft "hidden" f32, the final row of the last token, and "mtp", see
// [Draft]. A reader passes over others.
type pointHeader struct {
	Version    int         `json:"version"`
	Key        memory.Key  `json:"key"`
	Kind       memory.Kind `json:"kind"`
	Resumed    bool        `json:"returned,omitempty"` // the conversation was resumed
	Tokens     int         `json:"tokens"`
	PageTokens int         `json:"page_tokens"`
	Sections   []section   `json:"sections"`
}

// pageHeader describes a page's file: PageTokens positions after a prefix. Its sections are "ids", those of the page
// alone, and "kv".
type pageHeader struct {
	Version  int       `json:"version"`
	Chain    string    `json:"chain"` // the file's name: digest of key and all ids up to the page's end
	Sections []section `json:"sections"`
}

// DamageError says that a file is not what was written.
type DamageError struct{ What string }

func (e *DamageError) Error() string { return "damaged: " + e.What }

func damaged(format string, args ...any) error { return &DamageError{fmt.Sprintf(format, args...)} }

// encodeHead writes magic, length, checksum and JSON, filled up with spaces to a multiple of align.
func encodeHead(magic string, header any, align int) []byte {
	text, err := json.Marshal(header)
	if err != nil {
		panic("disk: a header that has no JSON")
	}
	size := (headBytes + len(text) + align - 1) / align * align
	out := append(make([]byte, 0, size), magic...)
	out = binary.LittleEndian.AppendUint32(out, uint32(size-headBytes))
	text = append(text, bytes.Repeat([]byte{' '}, size-headBytes-len(text))...)
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(text, castagnoli))
	return append(out, text...)
}

// readHead reads and checks a header. It leaves the reader at the first section.
func readHead(r io.Reader, magic string, into any) (size int64, err error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, damaged("the file ends in its head")
	}
	if string(head[:8]) != magic {
		return 0, damaged("the file does not begin with %q", magic)
	}
	n := binary.LittleEndian.Uint32(head[8:])
	if n > mostHeader {
		return 0, damaged("a header of %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return 0, damaged("the file ends in its header")
	}
	if crc32.Checksum(text, castagnoli) != binary.LittleEndian.Uint32(head[12:]) {
		return 0, damaged("the header's checksum differs")
	}
	if err := json.Unmarshal(text, into); err != nil {
		return 0, damaged("the header is not JSON")
	}
	return headBytes + int64(n), nil
}

// readBlock is how much is read before it is summed, so that the sum finds it in a cache. Summing runs beside reading.
const readBlock = 256 << 10

// readSection reads a section whole and checks it.
func readSection(r io.Reader, s section, into []byte) error {
	blocks, sum := make(chan []byte, 4), make(chan uint32)
	go func() {
		total := uint32(0)
		for block := range blocks {
			total = crc32.Update(total, castagnoli, block)
		}
		sum <- total
	}()
	var err error
	for rest := into[:s.Bytes]; len(rest) > 0 && err == nil; {
		var n int
		n, err = io.ReadFull(r, rest[:min(len(rest), readBlock)])
		blocks <- rest[:n]
		rest = rest[n:]
	}
	close(blocks)
	switch found := <-sum; {
	case err != nil:
		return damaged("the file ends in section %s", s.Name)
	case found != s.CRC:
		return damaged("section %s: the checksum differs", s.Name)
	}
	return nil
}

// wholeFile checks that a file has exactly the size that its header implies, and no section an absurd one.
func wholeFile(f *os.File, head int64, sections []section) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := head
	for _, s := range sections {
		if s.Bytes < 0 || s.Bytes > info.Size() {
			return damaged("section %s has %d bytes in a file of %d", s.Name, s.Bytes, info.Size())
		}
		size += s.Bytes
	}
	if info.Size() != size {
		return damaged("the file has %d bytes, its header says %d", info.Size(), size)
	}
	return nil
}

func encodeRow(row []float32) []byte {
	out := make([]byte, 0, 4*len(row))
	for _, v := range row {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

func decodeRow(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func encodeIDs(ids []int32) []byte {
	out := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		out = binary.LittleEndian.AppendUint32(out, uint32(id))
	}
	return out
}

func decodeIDs(b []byte) []int32 {
	out := make([]int32, len(b)/4)
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}
