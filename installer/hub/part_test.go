package hub

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"slipway/manifests"
	testhub "slipway/test/hub"
)

// A part of a file arrives whole through what networks do, and a source that cannot serve parts is named.
func TestPartOfAFileArrivesOrSaysWhyNot(t *testing.T) {
	const from, to = 100_000, 1_900_000
	k := newKit(t)
	for _, c := range []struct {
		name   string
		fault  *testhub.Fault
		says   string // of the error; empty: it arrives
		waits  int    // before another try
		mirror bool   // a second source is there
	}{
		{name: "undisturbed"},
		{name: "cut twice", fault: &testhub.Fault{Place: testhub.CDN, Kind: testhub.Cut, After: 300_000, Times: 2},
			waits: 2},
		{name: "reset", fault: &testhub.Fault{Place: testhub.CDN, Kind: testhub.Reset, After: 1}, waits: 1},
		{name: "stalled", fault: &testhub.Fault{Place: testhub.CDN, Kind: testhub.Stall, After: 700_000}, waits: 1},
		{name: "expired address", fault: &testhub.Fault{Place: testhub.CDN, Kind: testhub.Status, Status: 403},
			waits: 1},
		{name: "no parts", fault: &testhub.Fault{Place: testhub.CDN, Kind: testhub.Whole, Times: -1},
			says: "does not serve parts of files"},
		{name: "no parts, and a mirror that has them", fault: &testhub.Fault{Place: testhub.CDN, Kind: testhub.Whole},
			mirror: true},
		{name: "a web page", fault: &testhub.Fault{Place: testhub.CDN, Kind: testhub.HTML, Times: -1}, says: "web page",
			waits: maxTries - 1},
		{name: "other bytes", fault: &testhub.Fault{Place: testhub.CDN, Kind: testhub.WrongRange, Times: -1},
			says: "where \"bytes 100000-1899999/3145745\" was asked for", waits: maxTries - 1},
		{name: "another size", fault: &testhub.Fault{Place: testhub.CDN, Kind: testhub.WrongTotal, Times: -1},
			says: "was asked for", waits: maxTries - 1},
		{name: "gone", fault: &testhub.Fault{Place: testhub.CDN, Kind: testhub.Cut, Times: -1}, says: "tried",
			waits: maxTries - 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			k.hub.Calm()
			k.slept = nil
			if k.config.Mirrors = nil; c.mirror {
				k.config.Mirrors = []string{k.hub.URL + "/"}
			}
			f, _ := k.repo.Lock().File("model-00001.safetensors")
			if c.fault != nil {
				k.hub.Script(*c.fault)
			}
			got := make([]byte, 0, to-from)
			take := func(b []byte, at int64) error {
				if at != from+int64(len(got)) {
					t.Fatalf("bytes of %d come after %d", at, from+len(got))
				}
				got = append(got, b...)
				return nil
			}
			err := k.client().Part(t.Context(), k.repo.Name, k.repo.Revision, f, from, to, take)
			if len(k.slept) != c.waits {
				t.Errorf("%d waits", len(k.slept))
			}
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v, wanted %q", err, c.says)
				}
				return
			}
			want := make([]byte, to-from)
			if _, rerr := testhub.Pattern(1, 3<<20+17).ReadAt(want, from); rerr != nil && !errors.Is(rerr, io.EOF) {
				t.Fatal(rerr)
			}
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

// What the hub says of the whole file must agree with the proven list, also where only a part is asked for.
func TestPartOfAnotherFileIsRefused(t *testing.T) {
	k := newKit(t)
	f, _ := k.repo.Lock().File("model-00001.safetensors")
	other := f
	other.SHA256 = manifests.DigestOf([32]byte{})
	longer := f
	longer.Size++
	none := func([]byte, int64) error { return errors.New("nothing may be written") }
	if err := k.client().Part(t.Context(), k.repo.Name, k.repo.Revision, other, 0, 10, none); !errors.As(err,
		new(*UpstreamDiffersError)) {
		t.Errorf("another hash: %v", err)
	}
	if err := k.client().Part(t.Context(), k.repo.Name, k.repo.Revision, longer, 0, 10, none); !errors.As(err,
		new(*UpstreamDiffersError)) {
		t.Errorf("another size: %v", err)
	}
}
