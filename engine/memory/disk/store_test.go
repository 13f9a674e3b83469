package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/engine/memory"
)

func TestPointsAreFoundAfterARestart(t *testing.T) {
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
			if info, err := os.Stat(s.path("pages", s.names[page])); err != nil ||
				info.Size() != s.Budget().PageBytes || info.Mode().Perm() != 0o600 {
				t.Errorf("a page: %v, %+v, budget %d", err, info, s.Budget().PageBytes)
			}
		}
	}
	if info, _ := os.Stat(s.dir); info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %o", info.Mode().Perm())
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
	if _, err := Open(filepath.Join(t.TempDir(), "c"), small); err == nil ||
		!strings.Contains(err.Error(), "--cache-disk-bytes") {
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

func TestPeriodicPointsLeaveHalfOfTheDailyBoundToOthers(t *testing.T) {
	opt := options()
	opt.DailyBytes = 20_000
	s := open(t, filepath.Join(t.TempDir(), "c"), opt)
	var errs []error
	write := func(kind memory.Kind) {
		ids := someIDs(uint64(len(errs)), 100)
		result := make(chan error, 1)
		s.Save(key, kind, false, ids, content{ids}, func(err error) { result <- err })
		errs = append(errs, <-result)
	}
	for range 8 {
		write(memory.KindPeriodic)
	}
	if used := s.Stats().WrittenBytes; errs[0] != nil || !errors.Is(errs[7], ErrDailyBound) || used > opt.DailyBytes/2 {
		t.Fatalf("%d bytes of points at intervals of %d a day: %v", used, opt.DailyBytes, errs)
	}
	if write(memory.KindTurn); errs[8] != nil {
		t.Fatalf("a turn's end found no room in the day: %v", errs[8])
	}
}

// Reading a pipe would wait for ever.
func TestPipeInTheFolderIsRefused(t *testing.T) {
	for _, name := range []string{"replies", "written-today"} {
		dir := filepath.Join(t.TempDir(), "c")
		s, err := Open(dir, options())
		if err != nil {
			t.Fatal(err)
		}
		finish(s)
		os.Remove(filepath.Join(dir, name))
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, options()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRemovedPointsDeleteOnlyTheirOwnPages(t *testing.T) {
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
	save(t, s, someIDs(99, 3)) // after the removal
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
	if got := read(); len(got) != 5 || got[3].Prefix != memory.HashPrefix([]int32{3}) ||
		got[3].IDs[9] != someIDs(3, 10)[9] {
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
	if info, _ := os.Stat(s.replyPath()); info.Size() > s.opt.ReplyBytes || len(got) < 20 ||
		got[len(got)-1].Prefix != memory.HashPrefix([]int32{999}) {
		t.Fatalf("%d bytes, %d replies", info.Size(), len(got))
	}
}
