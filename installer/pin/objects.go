// Package pin proves what a commit holds. A revision is the SHA-1 of a commit object; the commit names a tree, trees
// name trees and blobs, blobs are small files or the pointers of large ones, and a pointer names the SHA-256 and size
// of its file. Whoever holds the revision can check every link of that chain; nobody who brings the objects is trusted.
package pin

import (
	"bytes"
	"crypto/sha1" // only for the size of a sum; sums are made by sha1cd
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/pjbgf/sha1cd"

	"slipway/fault"
)

// Limits of what is read from a pack. A model repository has some hundred objects and some megabytes.
const (
	maxObjects       = 50_000
	maxObjectBytes   = 64 << 20
	maxInflatedBytes = 512 << 20
	maxDepth         = 64 // folders in folders, and deltas on deltas
)

// ProofError: the objects do not prove the revision.
type ProofError struct{ What string }

func (e *ProofError) Error() string { return "the git objects do not prove the revision: " + e.What }

// Fault: see package fault.
func (e *ProofError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Integrity, Step: fault.OtherNetwork}
}

// CollisionError: an object is built to have the SHA-1 of another one (Counter-cryptanalysis, Stevens 2013; the same
// detector as git's).
type CollisionError struct{ Object string }

func (e *CollisionError) Error() string {
	return "object " + e.Object + " shows an attack on SHA-1; this revision cannot be trusted"
}

// Fault: see package fault.
func (e *CollisionError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Integrity, Step: fault.OtherNetwork}
}

type object struct {
	kind plumbing.ObjectType
	data []byte
}

// objectsOf inflates a pack and names every object by its own hash, computed here.
func objectsOf(pack []byte) (map[string]object, error) {
	scanner := packfile.NewScanner(bytes.NewReader(pack))
	_, count, err := scanner.Header()
	if err != nil {
		return nil, &ProofError{"what came is no pack: " + err.Error()}
	}
	if count > maxObjects {
		return nil, &ProofError{fmt.Sprintf("the pack has %d objects, at most %d are read", count, maxObjects)}
	}
	byOffset := make(map[int64]object, count)
	byName := make(map[string]object, count)
	type delta struct {
		header packfile.ObjectHeader
		data   []byte
	}
	var deltas []delta
	var inflated int64
	for range count {
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return nil, &ProofError{"the pack is damaged: " + err.Error()}
		}
		if inflated += header.Length; header.Length < 0 || header.Length > maxObjectBytes ||
			inflated > maxInflatedBytes {
			return nil, &ProofError{"the pack inflates to more than is read"}
		}
		var data bytes.Buffer
		offset := header.Offset
		h := *header
		if _, _, err := scanner.NextObject(&data); err != nil {
			return nil, &ProofError{"the pack is damaged: " + err.Error()}
		}
		if int64(data.Len()) != h.Length {
			return nil, &ProofError{"an object is shorter than it says"}
		}
		if h.Type == plumbing.OFSDeltaObject || h.Type == plumbing.REFDeltaObject {
			h.Offset = offset
			deltas = append(deltas, delta{h, data.Bytes()})
			continue
		}
		o := object{h.Type, data.Bytes()}
		if err := name(byName, o); err != nil {
			return nil, err
		}
		byOffset[offset] = o
	}
	for round := 0; len(deltas) > 0; round++ {
		var left []delta
		for _, d := range deltas {
			base, ok := byOffset[d.header.OffsetReference]
			if d.header.Type == plumbing.REFDeltaObject {
				base, ok = byName[d.header.Reference.String()]
			}
			if !ok {
				left = append(left, d)
				continue
			}
			if size := deltaTarget(d.data); size < 0 || size > maxObjectBytes || inflated+size > maxInflatedBytes {
				return nil, &ProofError{"a delta inflates to more than is read"}
			}
			data, err := packfile.PatchDelta(base.data, d.data)
			if err != nil {
				return nil, &ProofError{"a delta does not fit its base: " + err.Error()}
			}
			inflated += int64(len(data))
			o := object{base.kind, data}
			if err := name(byName, o); err != nil {
				return nil, err
			}
			byOffset[d.header.Offset] = o
		}
		if len(left) == len(deltas) || round > maxDepth {
			return nil, &ProofError{"deltas without a base"}
		}
		deltas = left
	}
	return byName, nil
}

// deltaTarget is the size that a delta says its result has, or -1.
func deltaTarget(delta []byte) int64 {
	r := bytes.NewReader(delta)
	var sizes [2]int64
	for i := range sizes {
		for shift := 0; ; shift += 7 {
			b, err := r.ReadByte()
			if err != nil || shift > 56 {
				return -1
			}
			sizes[i] |= int64(b&0x7f) << shift
			if b&0x80 == 0 {
				break
			}
		}
	}
	return sizes[1]
}

func name(objects map[string]object, o object) error {
	sum, err := gitSum(o.kind.String(), o.data)
	if err == nil {
		objects[sum] = o
	}
	return err
}

// gitSum is the name of a git object, made by the hash that sees collisions.
func gitSum(kind string, data []byte) (string, error) {
	return sumSeeingCollisions(io.MultiReader(bytes.NewReader(fmt.Appendf(nil, "%s %d\x00", kind, len(data))),
		bytes.NewReader(data)))
}

func sumSeeingCollisions(r io.Reader) (string, error) {
	h, ok := sha1cd.New().(sha1cd.CollisionResistantHash)
	if !ok {
		return "", errors.New("pin: this build has no hash that sees collisions")
	}
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	sum, collision := h.CollisionResistantSum(make([]byte, 0, sha1.Size))
	if collision {
		return "", &CollisionError{hex.EncodeToString(sum)}
	}
	return hex.EncodeToString(sum), nil
}
