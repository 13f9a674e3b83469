package hub

import (
	"context"
	"fmt"
	"hash"
	"time"

	"slipway/installer/store"
	"slipway/manifests"
)

// hashChunkBytes: what is read at once, still in the processor's cache from being written.
const hashChunkBytes = 256 << 10

// hashAndFinish follows the written bytes of the file in order, hashes them from the file, and at the end gives the
// file its final name. At each segment border it waits until the bytes are durable, saves its state and has the journal
// written, so that a killed run hashes at most one segment again. nil when the file is done or the download stops.
func (t *transfer) hashAndFinish(ctx context.Context) error {
	buffer := make([]byte, min(hashChunkBytes, max(t.file.Size, 1)))
	looked := false
	for wrong := 0; ; {
		found, stopped, err := t.hashOnce(ctx, buffer)
		if err != nil || stopped {
			return err
		}
		if found == t.file.SHA256 && !looked && t.part.Altered() {
			// another program wrote into it after our last write: what counts are the bytes that are there now
			looked = true
			t.part.Acknowledge()
			t.mu.Lock()
			t.hashedTo, t.hashState = 0, nil
			t.mu.Unlock()
			continue
		}
		if found == t.file.SHA256 {
			return t.commit(found)
		}
		t.judgedOnce.Do(func() { close(t.judged) })
		wrong++
		again, err := t.refuse(found, wrong)
		if err != nil {
			return err
		}
		if !again {
			return nil
		}
	}
}

// hashOnce hashes one generation to the end of the file; when another generation begins it starts again.
func (t *transfer) hashOnce(ctx context.Context, buffer []byte) (found manifests.Digest, stopped bool, err error) {
	t.mu.Lock()
	t.finishing = false
	generation := t.generation
	at, h := t.hashedTo, restoreHash(t.hashState)
	t.mu.Unlock()
	if h == nil {
		at, h = 0, store.NewWeightHash()
	}
	border := (at/t.segment + 1) * t.segment
	for {
		t.mu.Lock()
		to, now := t.written(at)
		durable := t.done.reach(0)
		quiet := len(t.pieces) == 0
		if now == generation && at == t.file.Size && durable >= at && quiet && t.restart == nil {
			t.finishing = true
			t.mu.Unlock()
			return manifests.DigestOf([32]byte(h.Sum(nil))), false, nil
		}
		t.mu.Unlock()
		if now != generation {
			generation, at, h, border = now, 0, store.NewWeightHash(), t.segment
			continue
		}
		if at >= border && durable >= border {
			t.checkpoint(h, at, generation)
			if err := t.saveJournal(); err != nil {
				return "", false, err
			}
			border += t.segment
			continue
		}
		to = min(to, border)
		ready := to-at >= int64(len(buffer)) || to == min(border, t.file.Size) && to > at
		if ready {
			n := int(min(int64(len(buffer)), to-at))
			if _, err := t.part.ReadAt(buffer[:n], at); err != nil {
				return "", false, fmt.Errorf("reading %s back: %w", t.file.Path, err)
			}
			h.Write(buffer[:n])
			t.d.tell.say(Event{Kind: Hashed, Path: t.file.Path, From: at, Bytes: int64(n), Total: t.file.Size})
			at += int64(n)
			continue
		}
		if !t.waitForNews(ctx) {
			<-t.d.workersLeft
			if !t.small() {
				t.keep(h, at, generation)
			}
			return "", true, nil
		}
	}
}

func (t *transfer) checkpoint(h hash.Hash, at int64, generation int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.generation == generation && t.restart == nil {
		t.hashedTo, t.hashState = at, saveHash(h)
	}
}

// waitForNews is false when the download stops.
func (t *transfer) waitForNews(ctx context.Context) bool {
	timer := time.NewTimer(tick)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.news:
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// commit gives the file its final name, and a copy to every other path of the lock that has the same bytes.
func (t *transfer) commit(found manifests.Digest) error {
	if err := t.part.Commit(t.d.lock, t.file.Path, found); err != nil {
		return err
	}
	t.d.tell.say(Event{Kind: Done, Path: t.file.Path, Bytes: t.file.Size, Total: t.file.Size})
	return t.d.finished(t)
}

// refuse handles a file whose hash is wrong: aside with it, and once more from the next source; then it is an error.
func (t *transfer) refuse(found manifests.Digest, wrong int) (again bool, err error) {
	source := redactURL(t.endpointNow())
	kept, err := t.part.Quarantine(found, source)
	if err != nil {
		return false, err
	}
	if err := t.part.Reserve(); err != nil {
		return false, err
	}
	identity, err := t.part.Identity()
	if err != nil {
		return false, err
	}
	t.mu.Lock()
	t.tries = append(t.tries, source)
	tries := t.tries
	t.inode = identity.Inode
	t.address = nil
	t.mu.Unlock()
	if !t.nextEndpoint(t.endpointIndex()) && wrong >= 2 {
		return false, &WrongBytesError{Path: t.file.Path, Expected: t.file.SHA256, Found: found, Sources: tries,
			Kept: kept}
	}
	t.d.tell.say(Event{Kind: Notice, Path: t.file.Path, Why: fmt.Sprintf(
		"%s came with other bytes than the lock names (expected %s, found %s). They are kept in %s; fetching it "+
			"once more.",
		t.file.Path, t.file.SHA256, found, kept)})
	t.mu.Lock()
	t.beginAgain()
	t.mu.Unlock()
	t.d.wake()
	return true, nil
}
