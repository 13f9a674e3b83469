package hub

import (
	"encoding"
	"encoding/json"
	"hash"

	"slipway/installer/store"
	"slipway/manifests"
)

// journalSchemaVersion is the version written and the only one read; another one costs a fresh start of that file.
const journalSchemaVersion = 1

// A journal says which bytes of a partial file count. Invariants, checked after reading: the digest and size are those
// of the lock; Done is sorted, disjoint and within the size, and was durable (fsync) before the journal was written;
// the hash state is that of the first HashedBytes bytes, all of them in Done.
type journal struct {
	SchemaVersion int              `json:"schema_version"`
	SHA256        manifests.Digest `json:"sha256"`
	Bytes         int64            `json:"bytes"`
	Inode         uint64           `json:"inode"` // of the partial file: the hash state speaks of that file only
	Done          []byteRange      `json:"done"`
	HashedBytes   int64            `json:"hashed_bytes"`
	HashState     []byte           `json:"hash_state,omitempty"` // crypto/sha256, MarshalBinary
	ETag          string           `json:"etag,omitempty"`       // strong validator of the host below
	ETagHost      string           `json:"etag_host,omitempty"`
	OneStream     bool             `json:"one_stream,omitempty"` // the server ignores Range
}

// readJournal takes the newest journal that holds its invariants. Anything else is a fresh start, never a failure;
// known is false then.
func readJournal(file manifests.File, inode uint64, partialBytes int64, candidates ...[]byte) (j journal, known bool) {
	for _, data := range candidates {
		j = journal{}
		if json.Unmarshal(data, &j) != nil || j.SchemaVersion != journalSchemaVersion || j.SHA256 != file.SHA256 ||
			j.Bytes != file.Size || j.Inode != inode || !rangeSet(j.Done).valid(file.Size) {
			continue
		}
		if n := len(j.Done); n > 0 && j.Done[n-1].To > partialBytes {
			continue // the partial file was cut: nothing it says can be relied on
		}
		if j.HashedBytes < 0 || j.HashedBytes > rangeSet(j.Done).reach(0) || restoreHash(j.HashState) == nil {
			j.HashedBytes, j.HashState = 0, nil
		}
		return j, true
	}
	return journal{SchemaVersion: journalSchemaVersion, SHA256: file.SHA256, Bytes: file.Size, Inode: inode}, false
}

func saveHash(h hash.Hash) []byte {
	state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		panic("hub: the hash does not give its state: " + err.Error())
	}
	return state
}

// restoreHash is nil when the state is not one of a SHA-256.
func restoreHash(state []byte) hash.Hash {
	h := store.NewWeightHash()
	if len(state) == 0 || h.(encoding.BinaryUnmarshaler).UnmarshalBinary(state) != nil {
		return nil
	}
	return h
}
