package disk

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"slipway/atomicfile"
	"slipway/engine/memory"
	"slipway/engine/pass"
)

// ErrDailyBound says that the bound on bytes written in a day is reached.
var ErrDailyBound = errors.New("the disk cache has reached its bound on bytes written in a day")

// temporary begins the names of files that are being written.
const temporary = "writing-"

// Cost is what a point of these ids takes, and whether it may be saved: a file of the same ids is one point already.
func (s *Store) Cost(key memory.Key, kind memory.Kind, ids []int32) (cost memory.Cost, ok bool) {
	pages, whole := chain(key, ids, s.opt.PageTokens)
	if s.files[whole] {
		return cost, false
	}
	cost.Bytes = s.pointBytes(key, kind, ids)
	for _, page := range pages {
		cost.Pages = append(cost.Pages, s.pageID(page))
	}
	return cost, true
}

// pointBytes is what a point's file takes at the most, its pages aside.
func (s *Store) pointBytes(key memory.Key, kind memory.Kind, ids []int32) int64 {
	sections := s.pointSections(key, ids)
	// The checksums, the first slot and whether the conversation was resumed are not known yet; their greatest length
	// is.
	for i := range sections {
		sections[i].CRC = ^uint32(0)
		if sections[i].Name == s.opt.Draft.name() {
			sections[i].First = len(ids)
		}
	}
	bytes := int64(len(encodeHead(pointMagic, s.pointHeader(key, kind, true, ids, sections), pointAlign)))
	for _, section := range sections {
		bytes += section.Bytes
	}
	return bytes
}

func (s *Store) pointHeader(key memory.Key, kind memory.Kind, resumed bool, ids []int32,
	sections []section) pointHeader {
	return pointHeader{Version, key, kind, resumed, len(ids), s.opt.PageTokens, sections}
}

// pointSections are those of a file that has everything; a draft's may be left out.
func (s *Store) pointSections(key memory.Key, ids []int32) []section {
	out := []section{{Name: "ids", Bytes: 4 * int64(len(ids))}, {Name: "state", Bytes: s.opt.StateBytes}}
	if rest := len(ids) % s.opt.PageTokens; rest > 0 {
		out = append(out, section{Name: "tail", Bytes: s.opt.Positions(rest)})
	}
	if s.opt.RowBytes > 0 {
		out = append(out, section{Name: hiddenSection, Key: draftKey(key), Bytes: s.opt.RowBytes})
	}
	if first, n := s.opt.Draft.slots(len(ids)); n > 0 {
		out = append(out, section{Name: s.opt.Draft.name(), Key: s.opt.Draft.Key, First: first,
			Bytes: int64(n) * s.opt.Draft.SlotBytes})
	}
	return out
}

// Save writes a point in the background: state is what the network was after ids, resumed whether its conversation was
// resumed. Its methods are called from the background; done is called from the background, once state is no longer
// used. Returns at once. The caller made room in the index.
func (s *Store) Save(key memory.Key, kind memory.Kind, resumed bool, ids []int32, state pass.State, done func(error)) {
	pages, whole := chain(key, ids, s.opt.PageTokens)
	s.files[whole] = true
	s.jobs <- func() { done(s.save(key, kind, resumed, ids, pages, whole, state)) }
}

// save writes the missing pages first, then the point, so that the pages of every point on disk are there.
func (s *Store) save(key memory.Key, kind memory.Kind, resumed bool, ids []int32, pages []name, file name,
	state pass.State) error {
	size := s.pointBytes(key, kind, ids)
	for _, page := range pages {
		if !s.have[page] {
			size += s.pageFileBytes()
		}
	}
	asked := size
	if kind == memory.KindPeriodic {
		asked += s.opt.DailyBytes / 2 // the other half is for the ends of turns and replies
	}
	if err := s.mayWrite(asked); err != nil {
		return err
	}
	defer s.writeDay()
	for i, page := range pages {
		if s.have[page] {
			continue
		}
		kv := make([]byte, s.opt.Positions(s.opt.PageTokens))
		state.ReadPage(kv, i, s.opt.PageTokens)
		own := encodeIDs(ids[i*s.opt.PageTokens : (i+1)*s.opt.PageTokens])
		header := pageHeader{Version, page.String(), []section{describe("ids", own), describe("kv", kv)}}
		if err := s.write("pages", page, encodeHead(pageMagic, header, pageHeadLen), own, kv); err != nil {
			return err
		}
		s.have[page] = true
	}
	whole := make([]byte, s.opt.StateBytes)
	state.ReadState(whole)
	own := encodeIDs(ids)
	parts, sections := [][]byte{own, whole}, []section{describe("ids", own), describe("state", whole)}
	add := func(part []byte, as section) { parts, sections = append(parts, part), append(sections, as) }
	if rest := len(ids) % s.opt.PageTokens; rest > 0 {
		tail := make([]byte, s.opt.Positions(rest))
		state.ReadPage(tail, len(pages), rest)
		add(tail, describe("tail", tail))
	}
	if row := state.Hidden(); s.opt.RowBytes > 0 && 4*int64(len(row)) == s.opt.RowBytes {
		part := encodeRow(row)
		as := describe(hiddenSection, part)
		as.Key = draftKey(key)
		add(part, as)
	}
	if as, part, ok := s.slotsOf(state, len(ids)); ok {
		add(part, as)
	}
	head := encodeHead(pointMagic, s.pointHeader(key, kind, resumed, ids, sections), pointAlign)
	if err := s.write("points", file, append([][]byte{head}, parts...)...); err != nil {
		return err
	}
	s.count(func(t *Stats) { t.Written++ })
	return nil
}

// draftKey is the key of the hidden row's section: the trunk's row, so the trunk's revision and numerics are all it
// depends on.
func draftKey(key memory.Key) string { return "hidden " + key.Revision + " " + key.Numerics }

func describe(what string, data []byte) section {
	return section{Name: what, Bytes: int64(len(data)), CRC: crc32.Checksum(data, castagnoli)}
}

// write gives a file its final name when it is whole. There is no fsync: the checksums find what a power failure tears.
func (s *Store) write(sub string, n name, parts ...[]byte) error {
	f, err := os.OpenFile(filepath.Join(s.dir, sub, temporary+n.String()), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if _, err = f.Write(part); err != nil {
			break
		}
		s.today += int64(len(part))
		s.count(func(t *Stats) { t.WrittenBytes += int64(len(part)) })
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), s.path(sub, n))
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Remove deletes a point's file in the background, and pages that no point refers to. Returns at once.
func (s *Store) Remove(key memory.Key, ids []int32, free []memory.PageID) {
	_, whole := chain(key, ids, s.opt.PageTokens)
	delete(s.files, whole)
	names := make([]name, len(free))
	for i, id := range free {
		names[i] = s.names[id]
	}
	s.jobs <- func() {
		os.Remove(s.path("points", whole))
		for _, n := range names {
			os.Remove(s.path("pages", n))
			delete(s.have, n)
		}
	}
}

// mayWrite asks the day's bound.
func (s *Store) mayWrite(bytes int64) error {
	if day := s.opt.Now().UTC().Format("2006-01-02"); day != s.day {
		s.day, s.today = day, 0
	}
	if s.opt.DailyBytes > 0 && s.today+bytes > s.opt.DailyBytes {
		s.count(func(t *Stats) { t.Refused++ })
		return ErrDailyBound
	}
	return nil
}

// readDay and writeDay keep the day's count over restarts. A count that cannot be read starts at 0.
func (s *Store) readDay() {
	text, err := os.ReadFile(filepath.Join(s.dir, "written-today"))
	if err != nil {
		return
	}
	day, count, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if n, err := strconv.ParseInt(count, 10, 64); err == nil && n >= 0 {
		s.day, s.today = day, n
	}
}

func (s *Store) writeDay() {
	s.replace("written-today", fmt.Appendf(nil, "%s %d\n", s.day, s.today))
}

// replace writes a small file of the store as a whole.
func (s *Store) replace(name string, data []byte) error {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return atomicfile.Replace(root, name, data, 0o600)
}
