package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/engine/memory"
)

const (
	testPage  = 16
	testState = 256
)

var key = memory.Key{Model: "m", Revision: "r", KVFormat: "f32", Policy: memory.Policy{Name: "exact"}}

func options() Options {
	return Options{CapBytes: 1 << 20, PageTokens: testPage, StateBytes: testState, RowBytes: 8, Positions: func(n int) int64 { return int64(8 * n) }, ReplyBytes: 16 << 10,
		Now: func() time.Time { return time.Unix(1_800_000_000, 0) }, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
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

func TestPointsComeBackAfterARestart(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "new", "cache"), options())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, testPage - 1, testPage, testPage + 1, 5*testPage + 3} {
		save(t, s, someIDs(7, n)) // each is a prefix of the next: they share pages
	}
	pages, _ := filepath.Glob(filepath.Join(s.dir, "pages", "*"))
	if len(pages) != 5 {
		t.Errorf("%d page files, wanted the 5 of the longest", len(pages))
	}
	s = reopen(t, s)
	defer finish(s)
	if len(s.Found()) != 5 {
		t.Fatalf("%d points found", len(s.Found()))
	}
	for _, f := range s.Found() {
		if err := load(s, f.IDs); err != nil {
			t.Errorf("%d ids: %v", len(f.IDs), err)
		}
		if _, ok := s.Cost(key, memory.KindTurn, f.IDs); ok {
			t.Errorf("%d ids: the same prefix would be saved twice", len(f.IDs))
		}
	}
}

func TestCostIsNeverLessThanTheFiles(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "c"), options())
	for _, n := range []int{1, 15, 16, 40, 1000} {
		ids := someIDs(uint64(n), n)
		cost, ok := s.Cost(key, memory.KindTurn, ids)
		if !ok {
			t.Fatal("refused")
		}
		save(t, s, ids)
		_, whole := chain(key, ids, testPage)
		info, err := os.Stat(s.path("points", whole))
		if err != nil || info.Size() > cost.Bytes || info.Mode().Perm() != 0o600 {
			t.Errorf("%d ids: %v, cost %d, file %+v", n, err, cost.Bytes, info)
		}
		for _, page := range cost.Pages {
			if info, err := os.Stat(s.path("pages", s.names[page])); err != nil || info.Size() != s.Budget().PageBytes || info.Mode().Perm() != 0o600 {
				t.Errorf("a page: %v, %+v, budget %d", err, info, s.Budget().PageBytes)
			}
		}
	}
	if info, _ := os.Stat(s.dir); info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %o", info.Mode().Perm())
	}
}

func TestEveryFlippedByteAndEveryTornEndIsDetected(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "c"), options())
	ids := someIDs(3, testPage+5)
	save(t, s, ids)
	pages, whole := chain(key, ids, testPage)
	for _, path := range []string{s.path("points", whole), s.path("pages", pages[0])} {
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		check := func(what string, at int, bad []byte) {
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			var damage *DamageError
			if err := load(s, ids); !errors.As(err, &damage) {
				t.Fatalf("%s at byte %d of %d: %v", what, at, len(good), err)
			}
		}
		for at := range good {
			bad := bytes.Clone(good)
			bad[at] ^= 1 << (at % 8)
			check("flipped", at, bad)
			check("torn", at, good[:at])
		}
		check("longer", len(good), append(bytes.Clone(good), 0))
		os.WriteFile(path, good, 0o600)
		if err := load(s, ids); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamagedPointsAreDroppedAndCountedWhenTheFolderIsOpened(t *testing.T) {
	for name, harm := range map[string]func(*testing.T, string){
		"torn": func(t *testing.T, path string) { os.Truncate(path, 100) },
		"header flipped": func(t *testing.T, path string) {
			data, _ := os.ReadFile(path)
			data[40] ^= 1
			os.WriteFile(path, data, 0o600)
		},
		"under another name": func(t *testing.T, path string) {
			os.Rename(path, filepath.Join(filepath.Dir(path), strings.Repeat("ab", 32)))
		},
		"page missing": func(t *testing.T, path string) {
			pages, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "../pages/*"))
			os.Remove(pages[0])
		},
		"page torn": func(t *testing.T, path string) {
			pages, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "../pages/*"))
			os.Truncate(pages[0], 9)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(filepath.Join(t.TempDir(), "c"), options())
			if err != nil {
				t.Fatal(err)
			}
			ids := someIDs(3, testPage+5)
			save(t, s, ids)
			_, whole := chain(key, ids, testPage)
			path := s.path("points", whole)
			harm(t, path)
			s = reopen(t, s)
			defer finish(s)
			if len(s.Found()) != 0 || s.Stats().Damaged == 0 {
				t.Errorf("%d points found, %d damaged", len(s.Found()), s.Stats().Damaged)
			}
			if left, _ := filepath.Glob(filepath.Join(s.dir, "p*", "*")); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestPointWithoutOrWithAForeignDraftSectionStillServes(t *testing.T) {
	ids := someIDs(5, 20)
	for _, c := range []struct {
		name       string
		write, ask int64 // bytes of a row in the writing and in the reading server
	}{{"written without a draft", 0, 8}, {"read without a draft", 8, 0}, {"row of another width", 8, 16}} {
		opt := options()
		opt.RowBytes = c.write
		s, err := Open(filepath.Join(t.TempDir(), "c"), opt)
		if err != nil {
			t.Fatal(err)
		}
		save(t, s, ids)
		s.opt.RowBytes = c.ask
		s = reopen(t, s)
		saved, err := s.Load(key, ids)
		if err != nil || saved.Draft.Hidden != nil || len(saved.State) != testState {
			t.Errorf("%s: %v, hidden %v", c.name, err, saved)
		}
		finish(s)
	}
}

func TestForeignFoldersAndSecondServersAreRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, options()); err == nil || !strings.Contains(err.Error(), "holds other files") {
		t.Errorf("a folder with somebody's files: %v", err)
	}
	s := open(t, filepath.Join(t.TempDir(), "c"), options())
	if _, err := Open(s.dir, options()); !errors.Is(err, ErrInUse) {
		t.Errorf("a second server: %v", err)
	}
	small := options()
	small.CapBytes = 1000
	if _, err := Open(filepath.Join(t.TempDir(), "c"), small); err == nil || !strings.Contains(err.Error(), "--cache-disk-bytes") {
		t.Errorf("a cap that holds nothing: %v", err)
	}
}

func TestDailyBoundHoldsOverRestartsAndEndsWithTheDay(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	opt := options()
	opt.Now = func() time.Time { return now }
	opt.DailyBytes = 2000
	s, err := Open(filepath.Join(t.TempDir(), "c"), opt)
	if err != nil {
		t.Fatal(err)
	}
	write := func(seed uint64) error {
		result := make(chan error, 1)
		ids := someIDs(seed, 10)
		s.Save(key, memory.KindTurn, false, ids, content{ids}, func(err error) { result <- err })
		return <-result
	}
	wrote := 0
	for i := range uint64(20) {
		if write(i) == nil {
			wrote++
		}
	}
	if wrote == 0 || s.Stats().WrittenBytes > 2000+500 {
		t.Fatalf("%d points, %d bytes in a day of 2000", wrote, s.Stats().WrittenBytes)
	}
	s = reopen(t, s)
	defer func() { finish(s) }()
	if err := write(100); !errors.Is(err, ErrDailyBound) {
		t.Fatalf("after a restart: %v", err)
	}
	now = now.Add(24 * time.Hour)
	if err := write(101); err != nil {
		t.Fatalf("the next day: %v", err)
	}
}

func TestRemovedPointsTakeTheirOwnPagesAlone(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "c"), options())
	long := someIDs(1, 3*testPage)
	short := long[:testPage]
	save(t, s, short)
	save(t, s, long)
	x := memory.NewIndex(key, memory.Budget{}, s.Budget(), 0)
	shortCost := memory.Cost{Bytes: 1, Pages: []memory.PageID{s.pageID(first(chain(key, short, testPage))[0])}}
	longCost := memory.Cost{Bytes: 1}
	for _, page := range first(chain(key, long, testPage)) {
		longCost.Pages = append(longCost.Pages, s.pageID(page))
	}
	x.Add(key, short, nil, memory.KindTurn, x.Open(nil), memory.OnDisk, shortCost)
	p := x.Add(key, long, nil, memory.KindTurn, x.Open(nil), memory.OnDisk, longCost)
	gone := x.Release(p, memory.OnDisk, memory.LostEvicted)
	s.Remove(key, long, gone.Free)
	save(t, s, someIDs(99, 3)) // behind the removal
	if err := load(s, short); err != nil {
		t.Errorf("the prefix that stays: %v", err)
	}
	if _, err := s.Load(key, long); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the removed one: %v", err)
	}
	if pages, _ := filepath.Glob(filepath.Join(s.dir, "pages", "*")); len(pages) != 1 {
		t.Errorf("%d pages are left", len(pages))
	}
}

func first[A, B any](a A, _ B) A { return a }

func TestRepliesSurviveAndATornEndIsDropped(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "c"), options())
	if err != nil {
		t.Fatal(err)
	}
	read := func() (out []memory.Reply) {
		s.Replies(func(r memory.Reply) { out = append(out, r) })
		return out
	}
	read()
	for i := range int32(5) {
		s.SaveReply(memory.Reply{Prefix: memory.HashPrefix([]int32{i}), IDs: someIDs(uint64(i), 10)})
	}
	s = reopen(t, s)
	if got := read(); len(got) != 5 || got[3].Prefix != memory.HashPrefix([]int32{3}) || got[3].IDs[9] != someIDs(3, 10)[9] {
		t.Fatalf("%d replies", len(got))
	}
	finish(s)
	info, _ := os.Stat(s.replyPath())
	os.Truncate(s.replyPath(), info.Size()-3)
	s, err = Open(s.dir, s.opt)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(); len(got) != 4 || s.Stats().Damaged != 1 {
		t.Fatalf("%d replies, %d damaged", len(got), s.Stats().Damaged)
	}
	for i := range int32(1000) {
		s.SaveReply(memory.Reply{Prefix: memory.HashPrefix([]int32{i}), IDs: someIDs(uint64(i), 10)})
	}
	s = reopen(t, s)
	defer func() { finish(s) }()
	got := read()
	if info, _ := os.Stat(s.replyPath()); info.Size() > s.opt.ReplyBytes || len(got) < 20 || got[len(got)-1].Prefix != memory.HashPrefix([]int32{999}) {
		t.Fatalf("%d bytes, %d replies", info.Size(), len(got))
	}
}

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("SLIPWAY_CACHE_TEST_DIR"); dir != "" {
		writeUntilKilled(dir)
	}
	os.Exit(m.Run())
}

// writeUntilKilled grows conversations and removes old points, with the book's room.
func writeUntilKilled(dir string) {
	opt := options()
	opt.CapBytes = reserve + opt.ReplyBytes + 20_000
	s, err := Open(dir, opt)
	if err != nil {
		panic(err)
	}
	x := memory.NewIndex(key, memory.Budget{}, s.Budget(), 0)
	for _, f := range s.Found() {
		if _, ok := x.Room(memory.OnDisk, f.Cost, false); !ok {
			panic("what was found does not fit")
		}
		x.Add(f.Key, f.IDs, nil, f.Kind, x.Open(nil), memory.OnDisk, f.Cost)
	}
	os.Stdout.WriteString("ready\n")
	for seed := uint64(os.Getpid()); ; seed++ {
		ids := someIDs(seed, 400)
		for n := 7; n < len(ids); n += 61 {
			cost, ok := s.Cost(key, memory.KindTurn, ids[:n])
			if !ok {
				continue
			}
			gone, ok := x.Room(memory.OnDisk, cost, false)
			for _, g := range gone {
				s.Remove(key, g.Prefix(), g.Free)
			}
			if !ok {
				panic("no room")
			}
			x.Add(key, ids[:n], nil, memory.KindTurn, x.Open(nil), memory.OnDisk, cost)
			s.Save(key, memory.KindTurn, false, ids[:n], content{ids[:n]}, func(err error) {
				if err != nil {
					panic(err)
				}
			})
		}
	}
}

func TestKilledAtAnyMomentNothingHalfMadeIsFoundAndTheCapHolds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	opt := options()
	found := 0
	for round := range 15 {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "SLIPWAY_CACHE_TEST_DIR="+dir)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		io.ReadFull(out, make([]byte, 6))
		for range 3 {
			time.Sleep(time.Duration(1+round*3) * time.Millisecond)
			var total int64
			filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					if info, err := d.Info(); err == nil {
						total += info.Size()
					}
				}
				return nil
			})
			if limit := reserve + opt.ReplyBytes + 20_000; total > limit {
				t.Errorf("%d bytes while it ran, cap %d", total, limit)
			}
		}
		c.Process.Kill()
		c.Wait()
		s, err := Open(dir, opt)
		if err != nil {
			t.Fatal(err)
		}
		if s.Stats().Damaged != 0 {
			t.Errorf("round %d: %d damaged files after a kill", round, s.Stats().Damaged)
		}
		for _, f := range s.Found() {
			if err := load(s, f.IDs); err != nil {
				t.Errorf("round %d: a point of %d ids: %v", round, len(f.IDs), err)
			}
		}
		found += len(s.Found())
		if left, _ := filepath.Glob(filepath.Join(dir, "*", temporary+"*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		finish(s)
	}
	if found == 0 {
		t.Fatal("no point survived any kill: the test wrote nothing")
	}
}
