package serve

import (
	"fmt"
	"time"

	"slipway/units"
)

// MemoryLevel is how short of memory the machine is, as the system reports it.
type MemoryLevel int

const (
	MemoryEnough   MemoryLevel = iota
	MemoryShort                // caches should be dropped
	MemoryCritical             // no prompt is started
)

// Memory is what the system reports of the machine's memory.
type Memory struct {
	Level                 MemoryLevel
	FreeBytes, TotalBytes int64
}

// MemoryError says that a prompt is not started because the machine's memory runs out.
type MemoryError struct {
	Memory
	PromptTokens int
	RetryAfter   time.Duration
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("this machine's memory runs out: %s of %s are free. A prompt of %d tokens is not "+
		"begun, what runs continues; close other programs, or try again in %.0f s",
		units.GiB(e.FreeBytes), units.GiB(e.TotalBytes), e.PromptTokens, e.RetryAfter.Seconds())
}

// memoryPatience is when a client should try again: by then the system has compressed or swapped out what it can.
const memoryPatience = 30 * time.Second

// tight refuses a prompt while memory runs out. Safe from any goroutine.
func (e *Engine) tight(promptTokens int) error {
	if e.opt.Memory == nil {
		return nil
	}
	if m := e.opt.Memory(); m.Level >= MemoryCritical {
		return &MemoryError{m, promptTokens, memoryPatience}
	}
	return nil
}

// DropPoints releases the points in memory that no request uses, before the next pass. Safe from any goroutine.
func (e *Engine) DropPoints() {
	e.drop.Store(true)
	e.poke()
}

// relieve drops points if DropPoints was called.
func (e *Engine) relieve() {
	if !e.drop.Swap(false) || e.asleep {
		return
	}
	if e.opt.Keeper != nil {
		if n := e.opt.Keeper.Drop(); n > 0 {
			e.opt.Log.Warn("memory is short: restore points that nothing uses are given back", "points", n)
		}
	}
	if err := e.net.ReturnPages(); err != nil {
		e.opt.Log.Error("memory is short", "error", err.Error())
	}
}

// stayAwake keeps the machine awake while a request is active, and only then.
func (e *Engine) stayAwake() {
	switch {
	case e.opt.KeepAwake == nil:
	case len(e.active) > 0 && e.release == nil:
		e.release = e.opt.KeepAwake()
	case len(e.active) == 0 && e.release != nil:
		e.release()
		e.release = nil
	}
}
