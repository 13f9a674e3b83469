package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"slipway/engine/memory"
	"slipway/engine/pass"
)

const (
	testPage  = 16
	testState = 256
)

var key = memory.Key{Model: "m", Revision: "r", KVFormat: "f32", Policy: memory.Policy{Name: "exact"}}

func options() Options {
	return Options{CapBytes: 1 << 20, PageTokens: testPage, StateBytes: testState, RowBytes: 8,
		Positions: func(n int) int64 { return int64(8 * n) }, ReplyBytes: 16 << 10,
		Now: func() time.Time { return time.Unix(1_800_000_000, 0) },
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

// content is a state whose every byte follows from its ids.
type content struct{ ids []int32 }

func (c content) ReadState(dst []byte) {
	for i := range dst {
		dst[i] = byte(len(c.ids) * (i + 3))
	}
}

func (c content) ReadPage(dst []byte, index, tokens int) {
	for i := range tokens {
		binary.LittleEndian.PutUint64(dst[8*i:], uint64(c.ids[index*testPage+i])*0x9e3779b97f4a7c15)
	}
}

func (c content) Hidden() []float32 { return []float32{float32(len(c.ids)), 0.5} }
func (c content) Release()          {}
func (c content) Len() int          { return len(c.ids) }
func (c content) Reach() int        { return len(c.ids) }
func (c content) Pages() []int32    { return nil }

func (c content) Settle(at int) (pass.State, error) { return content{c.ids[:at]}, nil }

func open(t testing.TB, dir string, opt Options) *Store {
	t.Helper()
	s, err := Open(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(time.Minute) })
	return s
}

// reopen closes and opens.
func reopen(t testing.TB, s *Store) *Store {
	t.Helper()
	finish(s)
	next, err := Open(s.dir, s.opt)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func finish(s *Store) {
	close(s.jobs)
	<-s.stopped
	s.lock.Close()
}

func save(t testing.TB, s *Store, ids []int32) {
	t.Helper()
	result := make(chan error, 1)
	s.Save(key, memory.KindTurn, false, ids, content{ids}, func(err error) { result <- err })
	if err := <-result; err != nil {
		t.Fatal(err)
	}
}

// load reads a point with all its pages and compares every byte.
func load(s *Store, ids []int32) error {
	saved, err := s.Load(key, ids)
	if err != nil {
		return err
	}
	want := make([]byte, testState)
	content{ids}.ReadState(want)
	if len(saved.Draft.Hidden) != 2 || saved.Draft.Hidden[0] != float32(len(ids)) {
		return errors.New("another hidden row came back")
	}
	if !bytes.Equal(saved.State, want) {
		return errors.New("another state came back")
	}
	for i := 0; i*testPage < len(ids); i++ {
		tokens := min(testPage, len(ids)-i*testPage)
		got, err := saved.Page(i, tokens)
		if err != nil {
			return err
		}
		want := make([]byte, 8*tokens)
		content{ids}.ReadPage(want, i, tokens)
		if !bytes.Equal(got, want) {
			return errors.New("another page came back")
		}
	}
	return nil
}

func someIDs(seed uint64, n int) []int32 {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(r.IntN(4000))
	}
	return out
}

func first[A, B any](a A, _ B) A { return a }
