package host

import (
	"errors"
	"fmt"
	"strings"

	"slipway/engine/device"
	"slipway/engine/model"
	"slipway/units"
)

// roomMargin: suggested settings leave one part in so many of the working set to states and work buffers.
const roomMargin = 20

// explainRoom says for a model that does not fit into the GPU's memory which settings to lower, with the numbers.
func (h *Host) explainRoom(err error, o model.Options, c *model.Config) error {
	s := h.s
	gb := units.Short
	var short *device.MemoryError
	if !errors.As(err, &short) {
		return err
	}
	if short.Weights {
		return &ModelError{Sentence: fmt.Sprintf("the weights of %s do not fit: the GPU may use %s of this "+
			"machine's memory, holds %s already, and %s needs %s more; take a smaller model, or --device cpu",
			s.ModelDir, gb(short.WorkingSet), gb(short.Held), short.What, gb(short.Bytes))}
	}
	page := model.PageBytes(h.device, c, h.kv, o.Draft)
	windowPages := int64((s.WindowTokens + device.PageTokens - 1) / device.PageTokens)
	context, points := windowPages*int64(s.Parallel)*page, int64(o.ExtraPages)*page
	var says strings.Builder
	fmt.Fprintf(&says, "the GPU may use %s of this machine's memory and holds %s already, and %s needs %s more. "+
		"Keys and values take %s for --window %d times --parallel %d",
		gb(short.WorkingSet), gb(short.Held), short.What, gb(short.Bytes), gb(context), s.WindowTokens, s.Parallel)
	if points > 0 {
		fmt.Fprintf(&says, ", and %s, half of --cache-memory %d, for restore points", gb(points), s.CacheMemoryBytes)
	}
	over := short.Held + short.Bytes - short.WorkingSet + short.WorkingSet/roomMargin
	if pages := (context + points) / page; short.Bytes == pages*model.PageBytes(h.device, c, h.kv, model.NoDraft) {
		over += context + points - short.Bytes // the draft's pages come after them
	}
	tokens := (context + points - over) / (page * int64(s.Parallel)) * device.PageTokens
	var lower []string
	switch {
	case points > over:
		lower = append(lower, fmt.Sprintf("--cache-memory to %d", 2*(points-over)/1e8*1e8), "--window", "--parallel")
	case tokens >= LeastWindowTokens:
		with := ""
		if points > 0 {
			with = " with --cache-memory 0"
		}
		lower = append(lower, fmt.Sprintf("--window to %d%s", tokens, with), "--parallel")
	default:
		lower = append(lower, "--window", "--parallel")
		if points > 0 {
			lower = append(lower, "--cache-memory")
		}
	}
	fmt.Fprintf(&says, ". Lower %s", strings.Join(lower, ", or "))
	if h.kv == device.KVNative && c.HeadDim%device.KVGroup == 0 {
		fmt.Fprint(&says, ", or give --kv q8, which takes about half and is less exact")
	}
	if tokens < LeastWindowTokens {
		fmt.Fprint(&says, "; a smaller model leaves more")
	}
	return &SettingError{says.String()}
}
