package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// flood is what thirty clients saw together.
type flood struct {
	mu       sync.Mutex
	accepted int // answered with 200
	// of them: read to the end; left by the client; cancelled on the server
	whole, cut, killed int
	full               int                                                // refused because the queue was full
	usage              struct{ prompt, cached, computed, completion int } // of whole replies
	problems           []string
}

func (f *flood) count(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *flood) problem(format string, args ...any) {
	f.count(func() { f.problems = append(f.problems, fmt.Sprintf(format, args...)) })
}

// Thirty clients at once, of whom many leave in the middle: nothing is counted twice or lost, and nothing stays behind.
func TestFloodOfClientsLeavesNothingBehind(t *testing.T) {
	requests := 250
	if os.Getenv("SLIPWAY_SOAK") != "" {
		requests = 1000
	}
	idle := serving(t)
	quiet := idle.goroutines(t)

	// A small window and little memory for points, so that both are full, and stay so, after the first requests.
	p := serving(t, "--window", "512", "--parallel", "4", "--queue", "16", "--cache-memory", "16777216", "--cache-disk",
		t.TempDir())
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 40}}
	warm := &flood{}
	warm.run(p, client, requests/5, 1)
	client.CloseIdleConnections()
	p.rests(t)
	memory, files := p.ownBytes(t), p.files(t)

	f := &flood{}
	health, stop := make(chan []time.Duration, 1), make(chan struct{})
	go func() { health <- f.askHealth(p, stop) }()
	f.run(p, client, requests, 2)
	close(stop)
	if asked := len(<-health); asked < 10 {
		t.Errorf("health was asked %d times only", asked)
	}
	client.CloseIdleConnections()
	p.rests(t)

	f.accepted, f.whole, f.cut, f.killed, f.full = f.accepted+warm.accepted, f.whole+warm.whole, f.cut+warm.cut,
		f.killed+warm.killed, f.full+warm.full
	t.Logf("%d accepted: %d whole, %d left, %d cancelled by the monitor; %d refused as the queue was full", f.accepted,
		f.whole, f.cut, f.killed, f.full)
	for _, problem := range append(warm.problems, f.problems...) {
		t.Error(problem)
	}
	if f.whole < requests/4 || f.cut < requests/20 || f.killed < requests/50 {
		t.Error("too few of a kind to tell anything")
	}
	s := p.scrape(t)
	ended := func(reason string) int { return s[`slipway_requests_total{outcome="`+reason+`"}`] }
	if all := ended("stop") + ended("length") + ended("cancelled") + ended("error"); all != f.accepted {
		t.Errorf("%d requests were accepted, and %d have ended", f.accepted, all)
	}
	if n := ended("stop") + ended("length"); n < f.whole || n > f.whole+f.cut+f.killed || ended("error") != 0 {
		t.Errorf("%d replies were whole, the counters say %d, and %d failed", f.whole, n, ended("error"))
	}
	if n := s[`slipway_refused_total{code="queue_full"}`]; n != f.full {
		t.Errorf("%d were refused, the counter says %d", f.full, n)
	}
	prompt, cached, computed := s["slipway_prompt_tokens_total"], s["slipway_cached_tokens_total"],
		s["slipway_computed_tokens_total"]
	if prompt != cached+computed || prompt < f.usage.prompt+warm.usage.prompt || cached < f.usage.cached ||
		computed < f.usage.computed ||
		s["slipway_completion_tokens_total"] < f.usage.completion {
		t.Errorf("the counters are %d = %d + %d, %d; whole replies alone had %+v", prompt, cached, computed,
			s["slipway_completion_tokens_total"], f.usage)
	}
	totals := getJSON[struct {
		Totals struct {
			Prompt   int `json:"prompt_tokens"`
			Cached   int `json:"cached_tokens"`
			Computed int `json:"computed_tokens"`
		}
		History struct {
			Steps []struct {
				Cached     int `json:"cached_tokens"`
				Computed   int `json:"computed_tokens"`
				Completion int `json:"completion_tokens"`
				Ended      int
			}
		}
	}](t, p.url+"/slipway/system")
	if totals.Totals.Prompt != prompt || totals.Totals.Cached != cached || totals.Totals.Computed != computed {
		t.Errorf("the monitor's totals are %+v, the metrics' %d = %d + %d", totals.Totals, prompt, cached, computed)
	}
	var hour struct{ cached, computed, completion, ended int }
	for _, step := range totals.History.Steps {
		hour.cached += step.Cached
		hour.computed += step.Computed
		hour.completion += step.Completion
		hour.ended += step.Ended
	}
	if hour.cached != cached || hour.computed != computed || hour.completion != s["slipway_completion_tokens_total"] ||
		hour.ended != f.accepted {
		t.Errorf("the last hour adds up to %+v, the metrics to %v", hour, s)
	}
	for _, r := range requestsOf(t, p) {
		if r.PromptTokens != r.CachedTokens+r.ComputedTokens || r.Phase != "done" && r.Phase != "cancelled" {
			t.Errorf("%+v", r)
		}
	}

	client.CloseIdleConnections()
	if now := p.files(t); now > files+2 {
		t.Errorf("%d files are open, %d were after the first requests", now, files)
	}
	if now := p.ownBytes(t); now > memory+32<<20 {
		t.Errorf("%d MiB are held, %d were after the first requests", now>>20, memory>>20)
	}
	if now := p.goroutines(t); now > quiet+6 { // the disk cache and the last connections have theirs
		t.Errorf("%d goroutines are left, a server that did nothing has %d", now, quiet)
	}
}

// run lets thirty clients send n requests together.
func (f *flood) run(p *process, client *http.Client, n int, seed uint64) {
	const clients = 30
	work := make(chan int)
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(c)))
			for range work {
				f.request(p, client, random)
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	all.Wait()
}

// request sends one, and reads it, leaves it or has it cancelled. A full queue is waited for.
func (f *flood) request(p *process, client *http.Client, random *rand.Rand) {
	body := fmt.Sprintf(`{"model":"pocket","stream":true,"stream_options":{"include_usage":true},"temperature":1,"seed":%d,"max_tokens":%d,"messages":[{"role":"system","content":"Talk number %d."},{"role":"user","content":"%s"}],"chat_template_kwargs":{"enable_thinking":false}}`,
		random.Uint32(), 1+random.IntN(12), random.IntN(8), strings.Repeat("and so on ", random.IntN(20)))
	ctx, leave := context.WithTimeout(context.Background(), 3*time.Minute)
	defer leave()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/v1/chat/completions",
			strings.NewReader(body))
		if err != nil {
			f.problem("%v", err)
			return
		}
		r.Header.Set("Content-Type", "application/json")
		response, err := client.Do(r)
		if err != nil {
			f.problem("%v", err)
			return
		}
		if response.StatusCode == http.StatusTooManyRequests {
			io.Copy(io.Discard, response.Body)
			response.Body.Close()
			f.count(func() { f.full++ })
			time.Sleep(time.Duration(20+random.IntN(200)) * time.Millisecond)
			continue
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			f.problem("status %d", response.StatusCode)
			return
		}
		f.count(func() { f.accepted++ })
		switch random.IntN(5) {
		case 0: // leaves, at once or after some of it
			io.CopyN(io.Discard, response.Body, random.Int64N(600))
			leave()
			f.count(func() { f.cut++ })
		case 1:
			answer, err := client.Post(p.url+"/slipway/requests/"+response.Header.Get("X-Request-Id")+"/cancel",
				"application/json", nil)
			if err != nil {
				f.problem("cancel: %v", err)
				return
			}
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			if answer.StatusCode != 200 && answer.StatusCode != 404 { // 404: it has ended
				f.problem("cancel: status %d", answer.StatusCode)
			}
			io.Copy(io.Discard, response.Body)
			f.count(func() { f.killed++ })
		default:
			f.read(response.Body)
		}
		return
	}
}

// read takes a reply to its end.
func (f *flood) read(body io.Reader) {
	done := false
	for lines := bufio.NewScanner(body); lines.Scan(); {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		done = done || data == "[DONE]"
		if !is || !strings.Contains(data, `"usage":{`) {
			continue
		}
		var c struct {
			Usage struct {
				Prompt     int `json:"prompt_tokens"`
				Completion int `json:"completion_tokens"`
				Details    struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
				Slipway struct {
					Computed int `json:"computed_tokens"`
				}
			}
		}
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			f.problem("%v in %s", err, data)
			return
		}
		u := c.Usage
		if u.Prompt != u.Details.Cached+u.Slipway.Computed {
			f.problem("usage: %d is not %d + %d", u.Prompt, u.Details.Cached, u.Slipway.Computed)
		}
		f.count(func() {
			f.usage.prompt += u.Prompt
			f.usage.cached += u.Details.Cached
			f.usage.computed += u.Slipway.Computed
			f.usage.completion += u.Completion
		})
	}
	if !done {
		f.problem("a reply that nobody cut is not whole")
		return
	}
	f.count(func() { f.whole++ })
}

// askHealth asks on a connection of its own all the time; it tells how long each answer took, which is a
// matter for make bench alone.
func (f *flood) askHealth(p *process, stop <-chan struct{}) (took []time.Duration) {
	client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	for {
		select {
		case <-stop:
			return took
		case <-time.After(10 * time.Millisecond):
		}
		began := time.Now()
		response, err := client.Get(p.url + "/health")
		if err != nil {
			f.problem("health: %v", err)
			return took
		}
		var h struct{ Ready bool }
		err = json.NewDecoder(response.Body).Decode(&h)
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != 200 || !h.Ready {
			f.problem("health: status %d, ready %v, %v", response.StatusCode, h.Ready, err)
		}
		took = append(took, time.Since(began))
	}
}
