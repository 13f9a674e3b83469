package memory

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"sync"
)

// PrefixHash names the ids before a reply.
type PrefixHash [sha256.Size]byte

// HashPrefix hashes ids. It only finds remembered replies; states are never chosen by a hash.
func HashPrefix(ids []int32) PrefixHash {
	h := sha256.New()
	var b [4096]byte
	for len(ids) > 0 {
		n := min(len(ids), len(b)/4)
		for i, id := range ids[:n] {
			binary.LittleEndian.PutUint32(b[4*i:], uint32(id))
		}
		h.Write(b[:4*n])
		ids = ids[n:]
	}
	return PrefixHash(h.Sum(nil))
}

// Reply is what was streamed after a prefix: the exact ids of an assistant's turn, without its header and its end
// token.
type Reply struct {
	Prefix PrefixHash
	IDs    []int32
}

// Replies remembers the latest replies within a bound of bytes. Safe for concurrent use.
type Replies struct {
	mu           sync.Mutex
	limit, bytes int64
	order        *list.List // of *Reply, latest first
	byPrefix     map[PrefixHash][]*list.Element
}

// replyOverhead is about what a reply takes beside its ids.
const replyOverhead = 160

// NewReplies makes an empty memory of at most limit bytes.
func NewReplies(limit int64) *Replies {
	return &Replies{limit: limit, order: list.New(), byPrefix: map[PrefixHash][]*list.Element{}}
}

func (r *Reply) bytes() int64 { return replyOverhead + 4*int64(len(r.IDs)) }

// Remember keeps a reply and drops the oldest beyond the bound. It reports whether the reply was new.
func (r *Replies) Remember(reply Reply) bool {
	if reply.bytes() > r.limit {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.byPrefix[reply.Prefix] {
		if old := e.Value.(*Reply); len(old.IDs) == len(reply.IDs) && common(old.IDs, reply.IDs) == len(reply.IDs) {
			r.order.MoveToFront(e)
			return false
		}
	}
	reply.IDs = append([]int32(nil), reply.IDs...)
	e := r.order.PushFront(&reply)
	r.byPrefix[reply.Prefix] = append(r.byPrefix[reply.Prefix], e)
	for r.bytes += reply.bytes(); r.bytes > r.limit; {
		r.drop(r.order.Back())
	}
	return true
}

// Forget drops them all.
func (r *Replies) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes = 0
	r.order.Init()
	clear(r.byPrefix)
}

func (r *Replies) drop(e *list.Element) {
	old := r.order.Remove(e).(*Reply)
	r.bytes -= old.bytes()
	same := r.byPrefix[old.Prefix]
	for i, other := range same {
		if other == e {
			same = append(same[:i:i], same[i+1:]...)
			break
		}
	}
	if len(same) == 0 {
		delete(r.byPrefix, old.Prefix)
	} else {
		r.byPrefix[old.Prefix] = same
	}
}

// Behind gives the replies that were streamed after a prefix. They must not be changed.
func (r *Replies) Behind(prefix PrefixHash) []*Reply {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*Reply
	for _, e := range r.byPrefix[prefix] {
		out = append(out, e.Value.(*Reply))
	}
	return out
}

// Beginning gives the replies after prefixes whose hash begins with these bytes, the latest first. They must not be
// changed.
func (r *Replies) Beginning(hash []byte) (out []*Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for e := r.order.Front(); e != nil; e = e.Next() {
		if reply := e.Value.(*Reply); bytes.HasPrefix(reply.Prefix[:], hash) {
			out = append(out, reply)
		}
	}
	return out
}

// Bytes is what the replies take.
func (r *Replies) Bytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}
