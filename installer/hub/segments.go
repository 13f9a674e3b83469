package hub

import (
	"context"
	"time"
)

// segmentBytes is the unit of resuming: what a killed download fetches again per connection, at most. Small enough to
// spread a 2 GB file over eight connections evenly, large enough that an fsync per segment costs nothing (a full flush
// is some 5 ms on a laptop's disk; 32 MiB take 300 ms at 100 MB/s).
func segmentBytes(size int64) int64 {
	switch {
	case size <= 1<<30:
		return 16 << 20
	case size <= 8<<30:
		return 32 << 20
	}
	return 64 << 20
}

// minStealBytes: a smaller rest is not worth a new connection.
const minStealBytes = 1 << 20

// A piece is a range of one file that one worker fetches. All fields are guarded by the transfer's mutex: at is where
// the next byte goes; claimed is how far bytes are being written now; a thief may lower to, never below claimed.
type piece struct {
	transfer   *transfer
	from, to   int64
	at         int64
	claimed    int64
	generation int
	started    time.Time
	cancel     context.CancelFunc
}

// claim reserves up to n bytes at the piece's position for writing and says where; 0 when the piece has ended.
func (p *piece) claim(n int) (at int64, granted int) {
	t := p.transfer
	t.mu.Lock()
	defer t.mu.Unlock()
	granted = int(min(int64(n), p.to-p.at))
	p.claimed = p.at + int64(granted)
	return p.at, granted
}

// wrote moves the position over bytes that are in the file now.
func (p *piece) wrote(n int) {
	t := p.transfer
	t.mu.Lock()
	p.at += int64(n)
	t.mu.Unlock()
	t.poke()
}

func (p *piece) end() int64 {
	p.transfer.mu.Lock()
	defer p.transfer.mu.Unlock()
	return p.to
}

// next cuts the next piece off the transfer, or nil. The first missing bytes come first, so that the hash can follow.
// Called with the mutex held.
func (t *transfer) next() *piece {
	if t.restart != nil || t.finishing {
		return nil
	}
	covered := t.done
	for p := range t.pieces {
		covered = covered.add(byteRange{p.from, p.to})
	}
	gap, ok := covered.gap(t.file.Size)
	if !ok {
		return nil
	}
	if t.oneStream {
		if len(t.pieces) > 0 {
			return nil
		}
		return t.cut(byteRange{0, t.file.Size})
	}
	gap.To = min(gap.To, (gap.From/t.segment+1)*t.segment)
	return t.cut(gap)
}

func (t *transfer) cut(r byteRange) *piece {
	p := &piece{transfer: t, from: r.From, to: r.To, at: r.From, claimed: r.From, generation: t.generation,
		started: t.d.client.config.Now()}
	t.pieces[p] = true
	return p
}

// steal takes the second half of the piece that will end last, when that saves more than a moment. Called with the
// mutex held; nil when nothing is worth it.
func (t *transfer) steal() *piece {
	if t.restart != nil || t.oneStream || t.finishing {
		return nil
	}
	now := t.d.client.config.Now()
	var victim *piece
	var longest time.Duration
	for p := range t.pieces {
		rest, elapsed := p.to-p.claimed, now.Sub(p.started)
		if rest < 2*minStealBytes || p.at == p.from {
			continue
		}
		left := time.Duration(float64(elapsed) * float64(rest) / float64(p.at-p.from))
		if left > 200*time.Millisecond && left > longest {
			victim, longest = p, left
		}
	}
	if victim == nil {
		return nil
	}
	middle := victim.claimed + (victim.to-victim.claimed)/2
	r := byteRange{middle, victim.to}
	victim.to = middle
	return t.cut(r)
}
