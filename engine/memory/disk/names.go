package disk

import (
	"crypto/sha256"
	"encoding/hex"

	"slipway/engine/memory"
)

// name is a digest of a key and a prefix of ids.
type name [sha256.Size]byte

func (n name) String() string { return hex.EncodeToString(n[:]) }

func parseName(s string) (n name, ok bool) {
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != len(n) {
		return n, false
	}
	return name(raw), true
}

// chain gives the names of the whole pages of ids, and the name of all of ids: each page's name is the digest of the
// one before it and of its ids, the first one's of the key.
func chain(key memory.Key, ids []int32, pageTokens int) (pages []name, whole name) {
	at := name(key.Digest())
	for len(ids) >= pageTokens {
		at = link(at, ids[:pageTokens])
		pages = append(pages, at)
		ids = ids[pageTokens:]
	}
	return pages, link(at, ids)
}

func link(before name, ids []int32) name {
	h := sha256.New()
	h.Write(before[:])
	h.Write(encodeIDs(ids))
	return name(h.Sum(nil))
}
