package hub

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"slipway/manifests"
	testhub "slipway/test/hub"
)

const someRevision = manifests.Revision("0123456789abcdef0123456789abcdef01234567")

func TestTreeFollowsItsPages(t *testing.T) {
	k := newKit(t)
	k.hub.PageSize = 2
	entries, err := k.client().Tree(t.Context(), k.repo.Name, k.repo.Revision)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(k.repo.Lock().Files); len(entries) != want {
		t.Fatalf("%d entries, want %d", len(entries), want)
	}
	if err := compareTree(entries, k.repo.Lock()); err != nil {
		t.Fatal(err)
	}
}

func TestHostileTrees(t *testing.T) {
	file := func(path string) string { return fmt.Sprintf(`{"type":"file","path":%q,"size":1,"oid":"x"}`, path) }
	rows := map[string]string{
		"climbs":                    file("../../etc/passwd"),
		"climbs in the middle":      file("a/../../b"),
		"absolute":                  file("/etc/passwd"),
		"empty name":                file(""),
		"empty element":             file("a//b"),
		"backslash":                 file(`a\..\b`),
		"control character":         file("a\nb"),
		"case collision":            file("Model.bin") + "," + file("model.bin"),
		"normal forms of one name":  file("й") + "," + file("и\u0306"),
		"a file that is a folder":   file("a") + "," + file("a/b"),
		"listed twice":              file("a") + "," + file("a"),
		"our own marker":            file(".slipway-home"),
		"git's own folder":          file(".git/config"),
		"name longer than any disk": file(strings.Repeat("x", 300)),
	}
	for name, list := range rows {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) {
					fmt.Fprintf(w, "[%s]", list)
				}))
			defer server.Close()
			c, err := New(Config{Origin: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			var hostile *HostileError
			if _, err := c.Tree(t.Context(), "org/model", someRevision); !errors.As(err, &hostile) {
				t.Fatalf("got %v", err)
			}
		})
	}
	for name, link := range map[string]string{"in a circle": "SELF", "on another host": "http://127.0.0.2:1/x",
		"without end": "NEXT"} {
		t.Run("pages "+name, func(t *testing.T) {
			n := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n++
				target := link
				switch link {
				case "SELF":
					target = r.URL.String()
				case "NEXT":
					target = fmt.Sprintf("/api/models/org/model/tree/x?cursor=%d", n)
				}
				w.Header().Set("Link", "<"+target+`>; rel="next"`)
				fmt.Fprint(w, "[]")
			}))
			defer server.Close()
			c, err := New(Config{Origin: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			var hostile *HostileError
			if _, err := c.Tree(t.Context(), "org/model", someRevision); !errors.As(err, &hostile) {
				t.Fatalf("got %v after %d pages", err, n)
			}
		})
	}
	t.Run("answers without end", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			block := make([]byte, 1<<20)
			for {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}))
		defer server.Close()
		c, err := New(Config{Origin: server.URL, Sleep: newKit(t).config.Sleep})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Tree(t.Context(), "org/model", someRevision); err == nil {
			t.Fatal("taken")
		}
	})
}

func TestRateLimitHeader(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	rows := map[string]struct {
		header map[string]string
		want   time.Duration
	}{
		"t when r is 0": {map[string]string{"RateLimit": `"resolvers";r=0;t=87`}, 88 * time.Second},
		"r left: Retry-After": {map[string]string{"RateLimit": `"api";r=3;t=87`, "Retry-After": "9"},
			10 * time.Second},
		"second item": {map[string]string{"RateLimit": `"api";r=3;t=1, "resolvers";r=0;t=4`},
			5 * time.Second},
		"a date": {map[string]string{"Retry-After": now.Add(20 * time.Second).Format(http.TimeFormat)},
			21 * time.Second},
		"a date in the past": {map[string]string{"Retry-After": now.Add(-time.Hour).Format(http.TimeFormat)},
			time.Second},
		"nothing": {nil, time.Minute},
		"nonsense": {map[string]string{"RateLimit": `;;;r=x;t=-4`, "Retry-After": "soon"},
			time.Minute},
		"a century":                   {map[string]string{"RateLimit": `"x";r=0;t=99999999999`}, 10 * time.Minute},
		"a day is cut to ten minutes": {map[string]string{"Retry-After": "86400"}, 10 * time.Minute},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			for key, value := range row.header {
				h.Set(key, value)
			}
			if got := rateWait(h, now); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

// rangeSet against a plain array of bits.
func TestRangeSetAgainstBits(t *testing.T) {
	check := func(cuts []uint8) bool {
		var set rangeSet
		var bits [256]bool
		for i := 0; i+1 < len(cuts); i += 2 {
			from, to := min(cuts[i], cuts[i+1]), max(cuts[i], cuts[i+1])
			set = set.add(byteRange{int64(from), int64(to)})
			for b := from; b < to; b++ {
				bits[b] = true
			}
		}
		count := int64(0)
		firstGap := int64(-1)
		for b := range int64(255) {
			if bits[b] {
				count++
			} else if firstGap < 0 {
				firstGap = b
			}
		}
		gap, open := set.gap(255)
		return set.valid(255) && set.bytes() == count && open == (firstGap >= 0) && (!open || gap.From == firstGap) &&
			(!open || set.reach(0) == firstGap)
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 2000}); err != nil {
		t.Error(err)
	}
}

// The hub's list names another hash or size than the lock: told before a byte is fetched.
func TestHubsListContradictsTheLock(t *testing.T) {
	k := newKit(t)
	lock := k.repo.Lock()
	lock.Files[0].Size++
	err := k.downloadWith(within(t, time.Minute), k.client(), lock)
	var differs *UpstreamDiffersError
	if !errors.As(err, &differs) {
		t.Fatalf("got %v", err)
	}
	for _, seen := range k.hub.Log() {
		if seen.Place != testhub.Tree {
			t.Errorf("fetched %s", seen.Path)
		}
	}
}
