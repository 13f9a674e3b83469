// Package testhub is a model hub for tests: the API and git on one port, the files on another, as the real one has
// them, and every fault that a network, a mirror or a hub has been seen to have, by script. Git is git itself
// (git http-backend on a real repository whose large files are LFS pointers).
package testhub

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
)

// Content is what a file holds. It may be larger than memory.
type Content interface {
	io.ReaderAt
	Size() int64
}

// Bytes is a content held in memory.
func Bytes(b []byte) Content { return bytes.NewReader(b) }

// Pattern is size bytes that depend on seed and on their position, so that a misplaced byte shows.
func Pattern(seed uint64, size int64) Content { return pattern{seed, size} }

type pattern struct {
	seed uint64
	size int64
}

func (p pattern) Size() int64 { return p.size }

func (p pattern) ReadAt(b []byte, off int64) (int, error) {
	if off >= p.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), p.size-off))
	for i := 0; i < n; {
		at := off + int64(i)
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], mix(p.seed^uint64(at/8)))
		i += copy(b[i:n], word[at%8:])
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// mix is the finalizer of splitmix64: neighbouring inputs give unrelated outputs.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Sparse is size zero bytes with some that are not.
func Sparse(size int64, marks map[int64]byte) Content { return sparse{size, marks} }

type sparse struct {
	size  int64
	marks map[int64]byte
}

func (s sparse) Size() int64 { return s.size }

func (s sparse) ReadAt(b []byte, off int64) (int, error) {
	if off >= s.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), s.size-off))
	clear(b[:n])
	for at, value := range s.marks {
		if at >= off && at < off+int64(n) {
			b[at-off] = value
		}
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// SHA256 is the content's hash in hexadecimal.
func SHA256(c Content) string {
	h := sha256.New()
	io.Copy(h, io.NewSectionReader(c, 0, c.Size()))
	return hex.EncodeToString(h.Sum(nil))
}
