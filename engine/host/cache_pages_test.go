package host

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
)

// Points hold pages of the pool that sequences need too. However full both are, a request never finds no page: windows
// are filled by two requests at a time while points of all kinds come and go.
func TestFullWindowsNeverRunOutOfPagesBesideFullCache(t *testing.T) {
	conversations := 4 // of each client
	if os.Getenv("SLIPWAY_SOAK") != "" {
		conversations = 8
	}
	for _, pages := range []int64{1, 3, 8} {
		t.Run(fmt.Sprintf("%d pages for points", pages), func(t *testing.T) {
			var perPage int64
			probe := startKept(t, func(s *Settings) { s.WindowTokens = 768 })
			perPage = probe.host.network.PageBytes()
			probe.stop()
			k := startKept(t, func(s *Settings) {
				s.WindowTokens, s.CacheMemoryBytes = 768, 2*pages*perPage+perPage
				s.CacheDisk = t.TempDir() + "/cache"
			})
			if k.host.extraPages != int(pages) {
				t.Fatalf("%d pages for points", k.host.extraPages)
			}
			text := strings.Fields(k.document(31, 900))
			var wait sync.WaitGroup
			for client := range 2 {
				wait.Go(func() {
					r := rand.New(rand.NewPCG(uint64(client), 9))
					for range conversations {
						conversation := []message{user(strings.Join(text[:20+r.IntN(200)], " "))}
						if r.IntN(3) == 0 {
							conversation = []message{system(strings.Join(text[:60], " ")),
								user(strings.Join(text[r.IntN(100):][:20+r.IntN(60)], " "))}
						}
						switch r.IntN(4) {
						case 0: // to the window's end
							k.ask(conversation, message{"max_tokens": 600, "logit_bias": k.noEnd()})
						default:
							a := k.ask(conversation, message{"max_tokens": 5})
							k.ask(append(conversation, a.message(), user("And?")), message{"max_tokens": 3})
						}
					}
				})
			}
			wait.Wait()
			u := k.host.keeper.Counters()
			t.Logf("%+v", u)
			if u.Hits == 0 || pages < 3 && u.Refused == 0 {
				t.Errorf("%+v: nothing was full", u)
			}
		})
	}
}
