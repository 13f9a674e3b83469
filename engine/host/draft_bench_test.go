package host

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"

	"slipway/engine/sample"
	"slipway/engine/serve"
)

// BenchmarkDraftedDecode answers requests with and without a draft in turn, and
// reports the rate of decode over the undrafted one's, and the same by the processor time of whole answers, which says
// more on a machine that does other work too. The median of the pairs leaves out what else the machine does.
func BenchmarkDraftedDecode(b *testing.B) {
	raw, err := os.ReadFile("../model/testdata/oracle/oracle-q4.json")
	var oracle map[string]struct {
		IDs []int32 `json:"ids"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &oracle)
	}
	if err != nil {
		b.Fatal(err)
	}
	mtp := []drafting{{"mtp", 1}, {"mtp", 2}, {"mtp", 3}, {"mtp", 4}}
	blocks := []drafting{{"dflash2", 1}, {"dflash2", 2}, {"dflash2", 3}, {"dflash2", 4}, {"dflash2", 5}, {"dflash2", 7}}
	for _, text := range []struct {
		name, prompt string
		endless      bool // babbles on where the answer would end
		drafts       []drafting
	}{
		{"JSON list of codes", "needle_long", false, append(mtp, blocks...)}, {"chat", "chat", false, blocks},
		{"variables", "vt", false, blocks}, {"endless chat", "chat", true, mtp}, {"babble", "raw", true, append(mtp,
			blocks...)},
	} {
		for _, draft := range text.drafts {
			b.Run(fmt.Sprintf("%s/%s of %d", text.name, draft.kind, draft.tokens), func(b *testing.B) {
				plain, drafted := startBench(b, "none", 0), startBench(b, draft.kind, draft.tokens)
				p := sample.Neutral()
				p.Temperature = 0
				q := serve.Request{Prompt: oracle[text.prompt].IDs, MaxTokens: 160, Sampling: p, TopLogprobs: -1}
				if text.endless {
					q.Sampling.LogitBias = map[int32]float64{4088: -100}
				}
				var gains, cpuGains []float64
				var last answered
				for b.Loop() {
					before := cpuSeconds()
					want := plain.ask(q, 0)
					between := cpuSeconds()
					last = drafted.ask(q, 0)
					cpuGains = append(cpuGains, (between-before)/(cpuSeconds()-between))
					if !slices.Equal(last.IDs, want.IDs) {
						b.Fatal("the draft changed the reply")
					}
					gains = append(gains, want.times.Decode.Seconds()/last.times.Decode.Seconds())
				}
				slices.Sort(gains)
				slices.Sort(cpuGains)
				d := last.usage.Drafts
				b.ReportMetric(gains[len(gains)/2], "x-undrafted")
				b.ReportMetric(cpuGains[len(cpuGains)/2], "x-undrafted-cpu")
				b.ReportMetric(float64(d.Passes+d.Accepted())/float64(max(1, d.Passes)), "tokens/pass")
				b.ReportMetric(float64(d.Passes), "drafted-passes")
				b.ReportMetric(float64(len(last.IDs)), "tokens")
			})
		}
	}
}

// cpuSeconds is the processor time of this process.
func cpuSeconds() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

func startBench(b *testing.B, draft string, tokens int) *draftedHost {
	return startDraftedIn(b, draft, tokens, 64<<20, 4096)
}
