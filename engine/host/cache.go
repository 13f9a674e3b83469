package host

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"slipway/engine/device"
	"slipway/engine/memory"
	"slipway/engine/memory/disk"
	"slipway/engine/memory/keep"
	"slipway/engine/model"
	"slipway/engine/pass"
	"slipway/wire"
)

// tapeTokens is how many tokens of a reply can be taken back. Clients that leave have seen up to some dozens of tokens
// less than were streamed, and a draft has its rejected tokens taken back.
const tapeTokens = 64

// Bytes kept of replies' exact ids, in memory and on disk: about a million tokens.
const replyBytes = 4 << 20

// cacheBudget splits the memory for restore points in halves: attention pages, which are part of the pool from the
// start (a device may take their memory only as it is used), and states. Both bounds hold, so that the sum never
// exceeds bytes.
func cacheBudget(n *model.Network, bytes int64, extraPages int) memory.Budget {
	return memory.Budget{OwnBytes: bytes - int64(extraPages)*n.PageBytes(), Pages: extraPages, TotalBytes: bytes,
		PageBytes: n.PageBytes()}
}

// extraPages is how many pages half of the memory for restore points holds.
func extraPages(pageBytes, bytes int64) int { return int(bytes / 2 / pageBytes) }

// worthReading is how many tokens a file must save. Reading one takes as long as computing about that many: the 27B's
// state of 150 MiB is 50 ms at 3 GB/s, a token of its prefill some 5 ms.
const worthReading = 16

// openCache makes the keeper over the loaded network. There is none if nothing is to be kept.
func (h *Host) openCache() error {
	s, log := h.s, h.log
	if s.CacheMemoryBytes == 0 {
		return nil
	}
	n := h.network.Network
	budget := cacheBudget(n, s.CacheMemoryBytes, h.extraPages)
	if budget.OwnBytes < n.PointBytes() || budget.Pages < 1 {
		if s.CacheDisk != "" {
			return refuse("--cache-memory %d: a restore point of this model takes %d bytes of one half of it and "+
				"pages of %d of the other; give more, as --cache-disk restores through it", s.CacheMemoryBytes,
				n.PointBytes(), n.PageBytes())
		}
		log.Warn("nothing is kept between requests: the memory for it holds no restore point of this model",
			"cache_memory_bytes", s.CacheMemoryBytes, "point_bytes", n.PointBytes(), "page_bytes", n.PageBytes())
		return nil
	}
	opt := keep.Options{
		Key: h.key, PointBytes: n.PointBytes(), TapeTokenBytes: n.TapeBytes(1), PageTokens: device.PageTokens,
		WindowTokens: n.WindowTokens(), ChunkTokens: n.ChunkTokens(), Memory: budget, ReplyBytes: replyBytes,
		WorthReading: worthReading,
		Decode:       h.text.Tokenizer.Decode, Log: log, Import: h.importPoint,
	}
	if s.CacheDisk != "" {
		section, err := h.draftSection()
		if err != nil {
			return err
		}
		opt.Disk, err = disk.Open(s.CacheDisk, disk.Options{
			CapBytes: s.CacheDiskBytes, DailyBytes: s.CacheDiskDailyBytes, PageTokens: device.PageTokens,
			StateBytes: n.StateBytes(), RowBytes: n.RowBytes(), Positions: func(tokens int) int64 {
				return int64(n.PositionBytes(tokens))
			}, ReplyBytes: replyBytes, Now: time.Now, Log: log, Draft: section})
		if err != nil {
			return refuse("--cache-disk %s: %v", s.CacheDisk, err)
		}
		h.disk = opt.Disk
	}
	h.keeper = keep.New(opt)
	log.Info("requests go on from restore points", "points", budget.OwnBytes/n.PointBytes(), "tokens",
		int64(budget.Pages)*device.PageTokens, "disk", s.CacheDisk != "")
	return nil
}

func (h *Host) importPoint(tokens int, state []byte, draft disk.Draft, near pass.State, shared int,
	page func(index, tokens int) ([]byte, error)) (pass.State, error) {
	p, err := h.network.Import(tokens, state, draft.Hidden, near, shared, page)
	if err != nil {
		return nil, err // never a nil point in a state that is not nil
	}
	if err := p.SetSlots(draft.First, draft.Slots); err != nil {
		h.log.Warn("a restore point serves without its draft's part", "error", err.Error())
	}
	return p, nil
}

// keyOf says what states are computed under. Without a given revision the weights are known by their files: names,
// sizes and times of change, with the configuration's text.
func (h *Host) keyOf() (memory.Key, error) {
	revision := h.s.Revision
	if revision == "" {
		var err error
		if revision, err = filesDigest(h.s.ModelDir, h.checkpoint.Config); err != nil {
			return memory.Key{}, err
		}
	}
	var config struct {
		ModelType    string          `json:"model_type"`
		Quantization json.RawMessage `json:"quantization"`
	}
	if err := json.Unmarshal(h.checkpoint.Config, &config); err != nil {
		return memory.Key{}, err
	}
	return memory.Key{
		Model: config.ModelType, Revision: revision, Quantization: string(config.Quantization),
		KVFormat: h.device.KVFormats()[h.kv],
		Policy:   memory.Policy{Name: "exact"}, Device: h.device.Name(), Numerics: h.device.Numerics(),
	}, nil
}

// filesDigest names the weights in a folder, and its configuration.
func filesDigest(dir string, config []byte) (string, error) {
	digest := sha256.New()
	digest.Write(config)
	files, err := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(digest, "%s %d %d\n", filepath.Base(file), info.Size(), info.ModTime().UnixNano())
	}
	return "files " + hex.EncodeToString(digest.Sum(nil)), nil
}

// closeCache finishes the writes to disk within patience.
func (h *Host) closeCache(patience time.Duration) {
	if h.disk != nil {
		begun := time.Now()
		h.keeper.WritePending(patience)
		h.disk.Close(max(0, patience-time.Since(begun)))
	}
}

// ShowCache looks into a folder of restore points.
func ShowCache(dir string) (wire.CacheContents, error) { return disk.Show(dir) }

// ClearCache deletes the restore points and remembered replies of a folder that no server uses.
func ClearCache(dir string) error { return disk.Clear(dir) }
