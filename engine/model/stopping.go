package model

import (
	"context"
	"errors"
	"fmt"

	"slipway/engine/device"
)

// run runs what was recorded. A prefill is stopped with its context where the device can do so: the states as they were before
// are kept beside it meanwhile (0.15 GB for the 27B, copied in some milliseconds) and put back. Pages need no copy: what
// lies behind a sequence's end is not read.
func (n *Network) run(ctx context.Context) error {
	p, ok := n.pass.(device.StoppablePass)
	if !ok || ctx.Done() == nil || !n.keepStates() {
		return n.pass.Run(ctx)
	}
	err := p.RunStoppable(ctx)
	var stopped *device.StoppedError
	if errors.As(err, &stopped) {
		for i := range n.segments {
			n.segments[i].State.Copy(n.before[i])
		}
		return stopped.Err
	}
	return err
}

// keepStates copies the states of a prefill's segments. False where it is none, or where there is no memory for it.
func (n *Network) keepStates() bool {
	for i := range n.segments {
		if s := &n.segments[i]; s.State == nil || s.N <= device.TapeSegment {
			return false // the MTP head moves none; decode is over before a copy would pay
		}
	}
	for i := range n.segments {
		if i == len(n.before) {
			s, err := n.dev.State(n.stateGeometry)
			if err != nil {
				return false
			}
			n.before = append(n.before, s)
		}
		n.before[i].Copy(n.segments[i].State)
	}
	return true
}

// failed tells a pass that left the sequences where they were from one that broke, which loses their states.
func (n *Network) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	for _, s := range n.sequences {
		s.lost = true
	}
	return fmt.Errorf("a pass of %d rows failed on the device: %w", len(n.work.tokens), err)
}
