package installer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"slipway/fault"
	"slipway/installer/apply"
	"slipway/installer/hub"
	"slipway/installer/pin"
	"slipway/installer/plan"
	"slipway/installer/store"
	"slipway/manifests"
	"slipway/mtphead"
	"slipway/safetensors"
)

// HeadError: the shards of an original do not hold the head that a manifest promises. Nothing was changed.
type HeadError struct {
	Repo string
	Err  error
}

func (e *HeadError) Error() string {
	return fmt.Sprintf("the MTP head in the shards of %s cannot be used: %v", e.Repo, e.Err)
}

func (e *HeadError) Unwrap() error { return e.Err }

// Fault: see package fault.
func (e *HeadError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Integrity, Step: fault.OtherRevision}
}

// cut is how a head is cut out of an original's shards.
type cut struct {
	at    Environment
	in    Input
	model manifests.Manifest // that the head is for
	part  plan.Part
}

// headOf is where the head of a part comes from; nil: the part's files are taken whole.
func headOf(at Environment, in Input, model manifests.Manifest, part plan.Part) *apply.Head {
	if part.Tensors == "" {
		return nil
	}
	c := cut{at, in, model, part}
	return &apply.Head{Find: c.find, Fetch: c.fetch}
}

// find proves the original's file list, then reads its index, which is proven with it, and the headers of the shards,
// of which only sizes and shapes can be checked.
func (c cut) find(ctx context.Context, report func(apply.Event)) (found apply.FoundHead, err error) {
	note := func(text string) {
		report(apply.Event{Kind: "note", Action: string(c.part.FilesKind), Text: text})
	}
	client, err := c.client(note)
	if err != nil {
		return found, err
	}
	defer client.Close()
	report(apply.Event{Kind: "waiting", Action: string(c.part.FilesKind), Text: "Waiting for " + client.Name()})
	found.Shards, _, err = pin.Lock(ctx, client, pin.Ask{Repo: c.part.Repo, Revision: c.part.Revision,
		Include: c.part.Include, AcceptUnproven: !c.part.ProvenOnly, Now: time.Now()})
	if err != nil {
		return found, &ListError{c.part.ID, client.Name(), err}
	}
	shards, err := c.shards(ctx, client, found.Shards)
	if err != nil {
		return found, err
	}
	headers := map[string][]safetensors.Entry{}
	for _, f := range shards {
		if headers[f.Path], err = c.header(ctx, client, f); err != nil {
			return found, err
		}
	}
	found.Tensors, err = mtphead.Collect(headers, c.part.Tensors, mtphead.Shapes(c.model.Geometry))
	if err != nil {
		return found, &HeadError{c.part.Repo, err}
	}
	found.Source = fmt.Sprintf("byte ranges of %d shards at %s, written in 4 bit", len(shards), client.Name())
	return found, nil
}

func (c cut) client(note func(string)) (*hub.Client, error) {
	config := hub.ConfigFromEnv(c.at.Getenv)
	config.LimitBytesPerSec = c.in.LimitBytesPerSec
	config.Notify = func(e hub.Event) {
		if e.Why != "" {
			note(e.Why)
		}
	}
	return hub.New(config)
}

// shards are the files of the original that hold tensors of the head.
func (c cut) shards(ctx context.Context, client *hub.Client, lock manifests.Lock) ([]manifests.File, error) {
	index, ok := lock.File(mtphead.IndexName)
	var names []string
	if ok {
		data, err := client.Small(ctx, c.part.Repo, c.part.Revision, index.Path)
		if err != nil {
			return nil, err
		}
		if got := manifests.DigestOf(sha256.Sum256(data)); got != index.SHA256 {
			return nil, &hub.WrongBytesError{Path: index.Path, Expected: index.SHA256, Found: got,
				Sources: []string{client.Name()}}
		}
		if names, err = mtphead.Shards(data, c.part.Tensors); err != nil {
			return nil, &HeadError{c.part.Repo, err}
		}
	} else {
		for _, f := range lock.Files {
			if strings.HasSuffix(f.Path, ".safetensors") {
				names = append(names, f.Path)
			}
		}
	}
	var files []manifests.File
	for _, name := range names {
		f, ok := lock.File(name)
		if !ok {
			return nil, &HeadError{c.part.Repo, fmt.Errorf("its index names %q, which it does not have", name)}
		}
		files = append(files, f)
	}
	return files, nil
}

// headerBytes is how much of a shard is asked for first: more than the header of any shard of the family.
const headerBytes = 128 << 10

// header reads the header of a shard.
func (c cut) header(ctx context.Context, client *hub.Client, f manifests.File) ([]safetensors.Entry, error) {
	var data []byte
	more := func(to int64) error {
		return client.Part(ctx, c.part.Repo, c.part.Revision, f, int64(len(data)), to,
			func(b []byte, _ int64) error { data = append(data, b...); return nil })
	}
	if err := more(min(headerBytes, f.Size)); err != nil {
		return nil, err
	}
	if len(data) >= 8 {
		if n := binary.LittleEndian.Uint64(data); n <= safetensors.MaxHeaderBytes && int64(n)+8 > int64(len(data)) {
			if err := more(min(int64(n)+8, f.Size)); err != nil {
				return nil, err
			}
		}
	}
	entries, err := safetensors.ReadHeader(f.Path, data, f.Size)
	if err != nil {
		return nil, &HeadError{c.part.Repo, err}
	}
	return entries, nil
}

// keptEvery is how much of a head is fetched again after a kill, at most.
const keptEvery = 16 << 20

// arrived says how much of a partial file counts; it is the partial file's journal.
type arrived struct {
	Bytes int64  `json:"bytes"`
	Inode uint64 `json:"inode"`
}

// fetch brings the ranges one after the other, from where an earlier run stopped, and judges them by their digest where
// it is known.
func (c cut) fetch(ctx context.Context, part *store.Partial, found apply.FoundHead,
	report func(apply.Event)) error {
	client, err := c.client(func(text string) {
		report(apply.Event{Kind: "note", Action: string(c.part.FilesKind), Text: text})
	})
	if err != nil {
		return err
	}
	defer client.Close()
	id, err := part.Identity()
	if err != nil {
		return err
	}
	newest, _ := part.Journals()
	var there arrived
	if json.Unmarshal(newest, &there) != nil || there.Inode != id.Inode || part.Altered() ||
		there.Bytes < 0 || there.Bytes > id.Bytes {
		there = arrived{Inode: id.Inode}
		part.Restart()
	}
	if err := part.Reserve(); err != nil {
		return err
	}
	first, kept := there.Bytes, there.Bytes
	keep := func() error {
		if err := part.Sync(); err != nil {
			return err
		}
		kept = there.Bytes
		data, err := json.Marshal(there)
		if err == nil {
			err = part.SaveJournal(data)
		}
		return err
	}
	total := found.Tensors.Bytes()
	write := func(b []byte, at int64) error {
		if _, err := part.WriteAt(b, at); err != nil {
			return err
		}
		there.Bytes = at + int64(len(b))
		report(apply.Event{Kind: "progress", Action: string(c.part.FilesKind), Path: mtphead.FileName,
			DoneBytes: there.Bytes, AllBytes: total, TotalDoneBytes: there.Bytes, TotalBytes: total,
			ArrivedBytes: there.Bytes - first})
		if there.Bytes-kept >= keptEvery {
			return keep()
		}
		return nil
	}
	for _, run := range found.Tensors.Runs() {
		from := max(run.From, run.From+there.Bytes-run.At)
		if from >= run.To {
			continue
		}
		f, _ := found.Shards.File(run.File)
		err := client.Part(ctx, c.part.Repo, c.part.Revision, f, from, run.To,
			func(b []byte, at int64) error { return write(b, run.At+at-run.From) })
		if err != nil {
			if there.Bytes > kept {
				keep() // what arrived counts; the error is the other one
			}
			return err
		}
	}
	if err := keep(); err != nil {
		return err
	}
	return c.judge(ctx, part, total, client.Name())
}

// judge compares what was fetched with the manifest's digest of it. Without one there is nothing to compare with.
func (c cut) judge(ctx context.Context, part *store.Partial, bytes int64, source string) error {
	if c.part.SHA256 == "" {
		return nil
	}
	got, err := store.HashOf(ctx, io.NewSectionReader(part, 0, bytes), nil)
	if err != nil || got == c.part.SHA256 {
		return err
	}
	kept, err := part.Quarantine(got, source)
	if err != nil {
		return err
	}
	return &hub.WrongBytesError{Path: "the MTP head", Expected: c.part.SHA256, Found: got, Sources: []string{source},
		Kept: kept}
}
