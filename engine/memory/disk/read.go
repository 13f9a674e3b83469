package disk

import (
	"errors"
	"io"
	"os"
	"slices"

	"slipway/engine/memory"
)

// openPoint reads a point's file up to its ids and checks its size.
func openPoint(f *os.File) (header pointHeader, head int64, ids []int32, err error) {
	if head, err = readHead(f, pointMagic, &header); err != nil {
		return header, 0, nil, err
	}
	if header.Version != Version {
		return header, 0, nil, damaged("version %d, this server reads %d", header.Version, Version)
	}
	if err := wholeFile(f, head, header.Sections); err != nil {
		return header, 0, nil, err
	}
	if len(header.Sections) < 2 || header.Sections[0].Name != "ids" || header.Sections[0].Bytes != 4*int64(
		header.Tokens) {
		return header, 0, nil, damaged("no ids come first")
	}
	raw := make([]byte, header.Sections[0].Bytes)
	if err := readSection(f, header.Sections[0], raw); err != nil {
		return header, 0, nil, err
	}
	return header, head, decodeIDs(raw), nil
}

// Saved is a point's file that is open, with its state read and checked.
type Saved struct {
	s     *Store
	ids   []int32
	pages []name
	State []byte // the store's, until the next Load
	tail  []byte

	Draft Draft // what the file has of it under this run's keys
}

// Load reads the point after ids, compared one by one. Errors: *DamageError, after which the file is no good, or the
// system's.
func (s *Store) Load(key memory.Key, ids []int32) (*Saved, error) {
	pages, whole := chain(key, ids, s.opt.PageTokens)
	f, err := os.Open(s.path("points", whole))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	header, _, stored, err := openPoint(f)
	if err != nil {
		return nil, err
	}
	if header.Key != key || !slices.Equal(stored, ids) {
		return nil, damaged("the file is of another prefix")
	}
	saved := &Saved{s: s, ids: ids, pages: pages}
	for _, section := range header.Sections[1:] {
		var data []byte
		if section.Name == "state" && section.Bytes == s.opt.StateBytes {
			data = grown(&s.state, section.Bytes)
		} else {
			data = make([]byte, section.Bytes)
		}
		if err := readSection(f, section, data); err != nil {
			return nil, err
		}
		switch section.Name {
		case "state":
			saved.State = data
		case "tail":
			saved.tail = data
		default:
			s.readDraft(&saved.Draft, key, len(ids), section, data)
		}
	}
	if rest := len(ids) % s.opt.PageTokens; int64(len(saved.State)) != s.opt.StateBytes || rest > 0 &&
		int64(len(saved.tail)) != s.opt.Positions(rest) {
		return nil, damaged("state or positions of another size")
	}
	return saved, nil
}

// grown gives n bytes of a buffer that is kept: memory that is fresh every time costs as much as the reading.
func grown(buffer *[]byte, n int64) []byte {
	if int64(cap(*buffer)) < n {
		*buffer = make([]byte, n)
	}
	return (*buffer)[:n]
}

// Page reads the first tokens positions of the page at index, checked. They are the store's, until the next Page.
func (p *Saved) Page(index, tokens int) ([]byte, error) {
	if index == len(p.pages) {
		return p.tail, nil
	}
	f, err := os.Open(p.s.path("pages", p.pages[index]))
	if errors.Is(err, os.ErrNotExist) {
		return nil, damaged("a page is missing")
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var header pageHeader
	head, err := readHead(f, pageMagic, &header)
	if err != nil {
		return nil, err
	}
	if err := wholeFile(f, head, header.Sections); err != nil {
		return nil, err
	}
	if header.Version != Version || header.Chain != p.pages[index].String() || len(header.Sections) != 2 ||
		header.Sections[1].Bytes != p.s.opt.Positions(tokens) {
		return nil, damaged("a page of another kind")
	}
	data := grown(&p.s.page, header.Sections[0].Bytes+header.Sections[1].Bytes)
	own, kv := data[:header.Sections[0].Bytes], data[header.Sections[0].Bytes:]
	if err := readSection(f, header.Sections[0], own); err != nil {
		return nil, err
	}
	if !slices.Equal(decodeIDs(own), p.ids[index*p.s.opt.PageTokens:(index+1)*p.s.opt.PageTokens]) {
		return nil, damaged("a page of other ids")
	}
	if err := readSection(f, header.Sections[1], kv); err != nil && err != io.EOF {
		return nil, err
	}
	return kv, nil
}
