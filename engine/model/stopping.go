package model

import (
	"context"
	"errors"
	"fmt"

	"slipway/engine/device"
)

// run runs what was recorded. Where the device supports it, a prefill stops with its context: copies of the earlier
// states (0.15 GB for the 27B, copied in some milliseconds) are then restored. Pages need no copy: positions beyond a
// sequence's end are never read.
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

// keepStates copies the states of a prefill's segments. False if the pass is no prefill, or if there is no memory for
// it.
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

// failed marks the sequences as lost, unless the pass was stopped before it changed them.
func (n *Network) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	for _, s := range n.sequences {
		s.lost = true
	}
	return fmt.Errorf("a pass of %d rows failed on the device: %w", len(n.work.tokens), err)
}
