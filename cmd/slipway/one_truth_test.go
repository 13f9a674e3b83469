package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"slipway/installer/launch"
	"slipway/installer/operate"
	"slipway/units"
	"slipway/wire"
)

// measuredRun is what measure says of one request.
type measuredRun struct {
	Prompt     int     `json:"prompt_tokens"`
	Cached     int     `json:"cached_tokens"`
	Computed   int     `json:"computed_tokens"`
	Completion int     `json:"completion_tokens"`
	Prefill    float64 `json:"prefill_seconds"`
}

// oneTruth asks everybody who tells of the same request: measure (which reads the response's usage), status, the API
// that the monitor shows, and the metrics. The server must have answered few requests, all of which it still lists.
func (r *rig) oneTruth(env []string) {
	t := r.t
	t.Helper()
	code, out, errOut := r.run(env, "measure", "--json", "--max-tokens", "24")
	var measured struct {
		Data struct{ Result struct{ Runs []measuredRun } }
	}
	if err := json.Unmarshal([]byte(out), &measured); err != nil || code != 0 || len(measured.Data.Result.Runs) != 1 {
		t.Fatalf("measure: %d, %v\n%s%s", code, err, out, errOut)
	}
	m := measured.Data.Result.Runs[0]

	code, out, _ = r.run(env, "status", "--json")
	var status struct {
		Data struct {
			Live   *launch.Live         `json:"live"`
			Server operate.ServerStatus `json:"server"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil || code != 0 || status.Data.Live == nil ||
		len(status.Data.Live.Requests) == 0 {
		t.Fatalf("status: %d, %v\n%s", code, err, out)
	}
	live := status.Data.Live
	told := live.Requests[0]
	if told.PromptTokens != m.Prompt || told.CachedTokens != m.Cached || told.ComputedTokens != m.Computed ||
		told.CompletionTokens != m.Completion ||
		fmt.Sprintf("%.3f", told.PrefillMs/1000) != fmt.Sprintf("%.3f", m.Prefill) {
		t.Errorf("measure says %+v, status says %+v", m, told)
	}
	var sum wire.Totals
	for _, q := range live.Requests {
		if q.PromptTokens != q.CachedTokens+q.ComputedTokens {
			t.Errorf("a prompt is not cached + computed: %+v", q)
		}
		sum.PromptTokens += q.PromptTokens
		sum.CachedTokens += q.CachedTokens
		sum.ComputedTokens += q.ComputedTokens
		sum.CompletionTokens += q.CompletionTokens
	}
	if sum.Requests = live.Totals.Requests; !reflect.DeepEqual(sum, live.Totals) {
		t.Errorf("the requests add up to %+v, the totals are %+v", sum, live.Totals)
	}
	if live.Launch == nil || live.Launch.Profile != "exact" || live.Launch.Limit == "" ||
		live.Memory.WeightsBytes == 0 {
		t.Errorf("of the launch the server tells %+v, of its memory %+v", live.Launch, live.Memory)
	}

	counted := r.scrape()
	for name, want := range map[string]int{"slipway_prompt_tokens_total": sum.PromptTokens,
		"slipway_cached_tokens_total":   sum.CachedTokens,
		"slipway_computed_tokens_total": sum.ComputedTokens, "slipway_completion_tokens_total": sum.CompletionTokens} {
		if counted[name] != want {
			t.Errorf("%s is %d, the requests add up to %d", name, counted[name], want)
		}
	}

	code, out, _ = r.run(env, "status")
	line := fmt.Sprintf("prompt %s = %s cached + %s computed", units.Count(m.Prompt), units.Count(m.Cached),
		units.Count(m.Computed))
	if code != 0 || !strings.Contains(out, line) ||
		!strings.Contains(out, "Its monitor: "+status.Data.Server.Monitor) ||
		!strings.Contains(out, "Memory: weights ") {
		t.Errorf("%d, %q is not in:\n%s", code, line, out)
	}
	response, err := http.Get(status.Data.Server.Monitor)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if page, _ := io.ReadAll(response.Body); response.StatusCode != 200 ||
		!strings.Contains(string(page), "<title>slipway monitor</title>") {
		t.Errorf("%s: %d", status.Data.Server.Monitor, response.StatusCode)
	}
}

var sample = regexp.MustCompile(`(?m)^(slipway_\S+) (\S+)$`)

// scrape reads the counters of /metrics.
func (r *rig) scrape() map[string]int {
	r.t.Helper()
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", r.port))
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	values := map[string]int{}
	for _, found := range sample.FindAllStringSubmatch(string(text), -1) {
		var value float64
		fmt.Sscan(found[2], &value)
		values[found[1]] = int(value)
	}
	return values
}

// watches runs status --watch without a terminal while a question is asked.
func (r *rig) watches(env []string) {
	t := r.t
	t.Helper()
	if code, _, errOut := r.run(env, "status", "--watch", "--json"); code != exitUsage {
		t.Errorf("--watch --json: %d\n%s", code, errOut)
	}
	cmd := r.command(env, "status", "--watch")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	late := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer late.Stop()
	var text bytes.Buffer
	lines := bufio.NewScanner(io.TeeReader(pipe, &text))
	next := func(what string) {
		for lines.Scan() {
			if strings.Contains(lines.Text(), what) {
				return
			}
		}
		t.Fatalf("%q was never said:\n%s", what, text.String())
	}
	next("The server answers at ")
	asked := make(chan int, 1)
	go func() {
		code, _, _ := r.run(env, "ask", "Hello")
		asked <- code
	}()
	next("done: prompt ")
	if code := <-asked; code != 0 {
		t.Errorf("ask: %d", code)
	}
	cmd.Process.Signal(os.Interrupt)
	rest, _ := io.ReadAll(pipe)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupt {
		t.Errorf("Ctrl-C: %d", code)
	}
	if all := text.String() + string(rest); strings.ContainsAny(all, "\x1b\r") || strings.Contains(all, "Hello") {
		t.Errorf("without a terminal it prints:\n%q", all)
	}
}

// Everything that status prints of a request keeps the sum, and says of a rate whether it is provisional.
func TestStatusMarksProvisionalRatesAndKeepsTheSum(t *testing.T) {
	var l launch.Live
	if err := json.Unmarshal([]byte(`{"cache":{"memory":{"points":3,"bytes":1048576,"budget_bytes":536870912}},
		"machine":{"ram_bytes":38654705664,"available_bytes":1073741824,"swap_used_bytes":0,"own_bytes":null,"pressure":"warning"},
		"memory":{"loaded":false,"weights_bytes":1024,"context_bytes":1,"work_bytes":1,"points_budget_bytes":1},
		"launch":{"profile":"exact","budget_bytes":2147483648,"limit":"Window cut: Metal may use 27.0 GiB."},
		"requests":[
		{"id":"req_aaaaaaaaaaaa","phase":"queue","prefill":{"of_tokens":1234}},
		{"id":"req_bbbbbbbbbbbb","phase":"prefill","prompt_tokens":1500,"cached_tokens":500,"computed_tokens":1000,"prefill":{"done_tokens":1500,"of_tokens":3000},"prefill_tokens_per_s":250.4,"prefill_left_ms":5990.4},
		{"id":"req_cccccccccccc","phase":"decode","prompt_tokens":10,"cached_tokens":0,"computed_tokens":10,"completion_tokens":40,"max_tokens":100,"first_token_ms":12.4,"decode_tokens_per_s":31.25},
		{"id":"req_dddddddddddd","phase":"cancelled","prefill_policy":"exact","prompt_tokens":512,"cached_tokens":0,"computed_tokens":512,"prefill":{"done_tokens":512,"of_tokens":9000},"prefill_ms":2000,"prefill_tokens_per_s":256},
		{"id":"req_eeeeeeeeeeee","phase":"done","prefill_policy":"windowed","prompt_tokens":20,"cached_tokens":12,"computed_tokens":8,"completion_tokens":5,"prefill_ms":30,"first_token_ms":31,
		 "draft":{"drafted":10,"accepted":7,"tokens_per_pass":2.75,"off":"it is slower"},"recomputed":{"known_tokens":19,"again_tokens":7,"because":"evicted"}}]}`), &l); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	printLive(&out, &l, 10)
	for _, want := range []string{
		"given back until the next request", "budget 2.0 GiB", "Window cut: Metal may use 27.0 GiB.",
		"3 (1.0 MiB of 512.0 MiB) in memory", "memory pressure warning, 1.0 GiB of 36.0 GiB available",
		"aaaaaaaa waits for its turn with 1,234 tokens\n",
		"bbbbbbbb prefill 1,500 of 3,000 tokens, 250 tok/s so far (provisional), about 6.0 s left; prompt 1,500 = " +
			"500 cached + 1,000 computed\n",
		"cccccccc decode 40 of at most 100 tokens, 31.2 tok/s so far (provisional), first token after 12 ms; prompt " +
			"10 = 0 cached + 10 computed\n",
		"dddddddd cancelled: prompt 512 = 0 cached + 512 computed, of 9,000; prefill 2.0 s, 256 tok/s; 0 tokens\n",
		"eeeeeeee done: prompt 20 = 12 cached + 8 computed; prefill 30 ms; first token 31 ms; 5 tokens; draft 7 of " +
			"10 accepted, 2.75 tokens a pass, switched off; prefill policy windowed; 7 of 19 known computed again: evicted\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
}

// A watcher without a terminal says each change once, progress not more than every few seconds, and nothing of what had
// ended before.
func TestWatchPrintsEachChangeOnce(t *testing.T) {
	var out bytes.Buffer
	teller := newStatusTeller(&out)
	at := time.Unix(1_700_000_000, 0)
	a := operate.StatusAnswer{Server: operate.ServerStatus{State: launch.Running, Health: &wire.Health{Active: 1}},
		Live: &launch.Live{}}
	request := wire.WatchedRequest{ID: "req_0123456789", Phase: "prefill"}
	for i, phase := range []string{"prefill", "prefill", "prefill", "prefill", "prefill", "prefill", "decode", "done",
		"done"} {
		request.Phase = phase
		a.Live.Requests = []wire.WatchedRequest{request, {ID: "req_before_us", Phase: "done"}}
		teller.tell(a, at.Add(time.Duration(i)*time.Second))
	}
	// the server; prefill, again after five seconds; decode; done
	if got := strings.Count(out.String(), "\n"); got != 5 {
		t.Errorf("%d lines:\n%s", got, out.String())
	}
	a.Server.State, a.Live = launch.Stopped, nil
	teller.tell(a, at)
	if !strings.HasSuffix(out.String(), "The server is stopped.\n") {
		t.Errorf("%s", out.String())
	}
}
