package disk

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"slipway/engine/memory"
)

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
		if _, ok := x.Room(memory.OnDisk, f.Cost, memory.ClaimNew); !ok {
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
			gone, ok := x.Room(memory.OnDisk, cost, memory.ClaimNew)
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

func TestKillAtAnyMomentLeavesOnlyWholeFilesWithinTheCap(t *testing.T) {
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
