package disk

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"

	"slipway/engine/memory"
)

// Replies lie one after another in one file: u32 length of what follows the checksum, u32 CRC-32C of it, 32 bytes
// digest of the prefix, ids u32 each. Reading ends at the first that is torn.

func (s *Store) replyPath() string { return filepath.Join(s.dir, "replies") }

func encodeReply(r memory.Reply) []byte {
	body := append(r.Prefix[:len(r.Prefix):len(r.Prefix)], encodeIDs(r.IDs)...)
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(body, castagnoli))
	return append(out, body...)
}

// cutReply takes the first reply off b; ok is false where b is empty or torn.
func cutReply(b []byte) (r memory.Reply, rest []byte, ok bool) {
	if len(b) < 8 {
		return r, nil, false
	}
	n := int(binary.LittleEndian.Uint32(b))
	if n < len(r.Prefix) || n > len(b)-8 {
		return r, nil, false
	}
	body := b[8 : 8+n]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return r, nil, false
	}
	copy(r.Prefix[:], body)
	r.IDs = decodeIDs(body[len(r.Prefix):])
	return r, b[8+n:], true
}

// Replies visits the replies that earlier runs left, oldest first. Before the first SaveReply.
func (s *Store) Replies(visit func(memory.Reply)) {
	all, err := os.ReadFile(s.replyPath())
	if err != nil {
		return
	}
	whole := 0
	for rest := all; ; {
		r, after, ok := cutReply(rest)
		if !ok {
			break
		}
		visit(r)
		rest = after
		whole = len(all) - len(rest)
	}
	if whole < len(all) {
		s.opt.Log.Warn("the end of the remembered replies is damaged and dropped", "bytes", len(all)-whole)
		s.count(func(t *Stats) { t.Damaged++ })
		os.Truncate(s.replyPath(), int64(whole))
	}
	s.replies = int64(whole)
}

// SaveReply appends a reply in the background. Returns at once.
func (s *Store) SaveReply(r memory.Reply) {
	record := encodeReply(r)
	s.jobs <- func() { s.saveReply(record) }
}

// ForgetReplies deletes them all in the background. Returns at once.
func (s *Store) ForgetReplies() {
	s.jobs <- func() {
		os.Remove(s.replyPath())
		s.replies = 0
	}
}

func (s *Store) saveReply(record []byte) {
	size := int64(len(record))
	if 2*size > s.opt.ReplyBytes || s.mayWrite(size) != nil {
		return
	}
	// The new file is written beside the old one, so together they must stay within the bound.
	if s.replies+size > s.opt.ReplyBytes/2 {
		if !s.halveReplies() {
			return
		}
	}
	f, err := os.OpenFile(s.replyPath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	n, err := f.Write(record)
	s.today += int64(n)
	s.count(func(t *Stats) { t.WrittenBytes += int64(n) })
	if err != nil {
		os.Truncate(s.replyPath(), s.replies)
		return
	}
	s.replies += size
}

// halveReplies keeps the later half of the file.
func (s *Store) halveReplies() bool {
	all, err := os.ReadFile(s.replyPath())
	if err != nil {
		return false
	}
	rest := all
	for len(rest) > len(all)/2 {
		_, after, ok := cutReply(rest)
		if !ok {
			rest = nil
			break
		}
		rest = after
	}
	if s.replace(filepath.Base(s.replyPath()), rest) != nil {
		return false
	}
	s.replies = int64(len(rest))
	return true
}
