package hub

import (
	"context"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	testhub "slipway/test/hub"
)

// interrupted starts a download and stops it after about n bytes.
func (k *kit) interrupted(n int64) {
	k.t.Helper()
	ctx, cancel := context.WithCancel(within(k.t, time.Minute))
	k.hub.OnServed(func(served int64) {
		if served > n {
			cancel()
		}
	})
	if k.download(ctx) == nil {
		k.t.Fatal("the download was not interrupted")
	}
	k.hub.OnServed(nil)
	k.hub.Forget()
	k.events = nil
}

func oneBigFile() testhub.File {
	return testhub.File{Path: "model.safetensors", Content: testhub.Pattern(9, 16*testSegment), LFS: true}
}

// The signed addresses run out in the middle of a file: new ones are asked for, no try is spent, no byte is thrown
// away.
func TestSignedAddressesRunOutInTheMiddle(t *testing.T) {
	k := newKit(t, oneBigFile())
	k.config.Connections = 1
	var once sync.Once
	k.hub.OnServed(func(served int64) {
		if served > 5*testSegment {
			once.Do(k.hub.Expire)
		}
	})
	if err := k.download(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	k.whole()
	if waits := k.said(Waiting); len(waits) != 0 {
		t.Errorf("a new address cost a try: %q", waits)
	}
	var sent int64
	refused := 0
	for _, seen := range k.hub.Log() {
		if seen.Place == testhub.CDN {
			sent += seen.To - seen.From
			if seen.Status == 403 {
				refused++
			}
		}
	}
	if refused == 0 {
		t.Fatal("no address ran out: this test saw nothing")
	}
	if sent != 16*testSegment {
		t.Errorf("%d bytes were sent of a file of %d", sent, 16*testSegment)
	}
}

// A later run carries the validator of the bytes that it holds, once it asks the same host; content that changed
// starts over.
func TestResumeCarriesTheValidator(t *testing.T) {
	k := newKit(t, oneBigFile())
	k.interrupted(6 * testSegment)
	if err := k.download(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	k.whole()
	carried, bare, sent := 0, 0, int64(0)
	for _, seen := range k.hub.Log() {
		if seen.Place == testhub.CDN {
			sent += seen.To - seen.From
			if strings.Contains(seen.IfRange, k.repo.Lock().Files[0].SHA256.Hex()) {
				carried++
			} else {
				bare++
			}
		}
	}
	if carried == 0 || bare > 0 {
		t.Errorf("%d requests carried If-Range, %d did not", carried, bare)
	}
	// Six segments of sixteen were sent. On a busy machine some of them are still in the sockets when the client stops.
	if sent > 13*testSegment {
		t.Errorf("%d bytes were fetched although about six segments of sixteen had arrived", sent)
	}
}

func TestFileOnTheServerChangesBetweenTwoRuns(t *testing.T) {
	k := newKit(t, oneBigFile())
	k.interrupted(6 * testSegment)
	k.hub.Script(testhub.Fault{Place: testhub.CDN, Kind: testhub.NewETag, Times: -1})
	if err := k.download(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	k.whole()
}

// Never more requests at once than allowed, and the rate over all of them below the limit: with a clock of the test's.
func TestConnectionsStayBelowTheirLimit(t *testing.T) {
	k := newKit(t)
	k.config.Connections = 3
	var now, most atomic.Int64
	c := k.client()
	c.http.Transport = counting{c.http.Transport, &now, &most}
	if err := k.downloadWith(within(t, time.Minute), c, k.repo.Lock()); err != nil {
		t.Fatal(err)
	}
	if most.Load() > 3 || most.Load() < 2 {
		t.Errorf("%d requests at once, the limit is 3", most.Load())
	}
}

func TestRateLimitOfTheUser(t *testing.T) {
	clock := time.Unix(0, 0)
	config := Config{Now: func() time.Time { return clock },
		Sleep: func(ctx context.Context, d time.Duration) error {
			clock = clock.Add(d)
			return nil
		}}
	p := pace{perSecond: 1000}
	for range 100 {
		if err := p.take(t.Context(), 50, &config); err != nil {
			t.Fatal(err)
		}
	}
	if took := clock.Sub(time.Unix(0, 0)); took < 4900*time.Millisecond || took > 5*time.Second {
		t.Errorf("5,000 bytes at 1,000 a second took %s of the test's clock", took)
	}
}

// A home given relative to a folder that the program then leaves.
func TestRelativeHomeAndAChangeOfFolder(t *testing.T) {
	k := newKit(t)
	t.Chdir(t.TempDir())
	if err := os.Mkdir("home", 0o755); err != nil {
		t.Fatal(err)
	}
	home, err := os.OpenRoot("home")
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	k.home = home
	t.Chdir(t.TempDir())
	if err := k.download(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	k.whole()
}
