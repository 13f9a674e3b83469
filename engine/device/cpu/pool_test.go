package cpu

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"slipway/engine/device"
)

// copyChain turns rows about four times, so that every operation of a pass depends on the one before, and checks that
// they are back in place.
func copyChain(t *testing.T, d *Device, rounds int) {
	const rows, cols = 40, 300
	a, b, c := newBuffer(rows, cols), newBuffer(rows, cols), newBuffer(rows, cols)
	reverse := make([]int32, rows)
	for i := range reverse {
		reverse[i] = int32(rows - 1 - i)
	}
	p := d.NewPass()
	for round := range rounds {
		for i := range a.f {
			a.f[i] = float32(i + round)
		}
		p.Begin([]device.Segment{{N: rows}})
		p.Gather(b, a, reverse)
		p.Gather(c, b, reverse)
		p.Gather(b, c, reverse)
		p.Gather(c, b, reverse)
		if err := p.Run(t.Context()); err != nil {
			t.Error(err)
			return
		}
		for i := range c.f {
			if c.f[i] != float32(i+round) {
				t.Errorf("round %d: value %d is %v", round, i, c.f[i])
				return
			}
		}
	}
}

func TestNetworksOnOneDeviceTakeTurns(t *testing.T) {
	d := New(4)
	defer d.Close()
	var done sync.WaitGroup
	for range 3 {
		done.Add(1)
		go func() {
			defer done.Done()
			copyChain(t, d, 300)
		}()
	}
	done.Wait()
}

// A parked thread must wake for the next pass, and passes must be right whether threads spin, park or are on their way.
func TestParkedThreadsWakeForTheNextPass(t *testing.T) {
	d := New(3)
	defer d.Close()
	for range 20 {
		copyChain(t, d, 3)
		deadline := time.Now().Add(10 * time.Second)
		for d.pool.parked.Load() != 2 {
			if time.Now().After(deadline) {
				t.Fatalf("%d of 2 idle threads have parked", d.pool.parked.Load())
			}
			time.Sleep(100 * time.Microsecond)
		}
	}
}

func TestClosedDeviceLeavesNoThreads(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 10 {
		d := New(5)
		copyChain(t, d, 2)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) { // a thread that ends does so far earlier, also on a busy machine
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}
