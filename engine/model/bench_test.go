package model

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"

	"slipway/engine/pass"
)

func benchPrompt(b *testing.B, n int) []int32 {
	b.Helper()
	text := make([]int32, n)
	for i := range text {
		text[i] = int32(i*7919%4000 + 17)
	}
	return text
}

// BenchmarkPrefill2000 computes a prompt of 2,000 tokens in the network's own chunks.
func BenchmarkPrefill2000(b *testing.B) {
	n := load(b, pocketQ4, Options{WindowTokens: 8192, MaxSequences: 2})
	prompt := benchPrompt(b, 2000)
	for b.Loop() {
		s := newSequence(b, n)
		for at := 0; at < len(prompt); at += n.ChunkTokens() {
			end := min(at+n.ChunkTokens(), len(prompt))
			if _, err := n.Forward(context.Background(), []pass.Segment{
				{Seq: s, Tokens: prompt[at:end], Logits: pass.LogitsLast}}); err != nil {
				b.Fatal(err)
			}
		}
		s.Close()
	}
	b.ReportMetric(float64(b.N*len(prompt))/b.Elapsed().Seconds(), "tokens/s")
}

// BenchmarkDecode computes one token at a time after a prompt of 200.
func BenchmarkDecode(b *testing.B) {
	n := load(b, pocketQ4, Options{WindowTokens: 32768, MaxSequences: 1})
	s := newSequence(b, n)
	forward(b, s, benchPrompt(b, 200), 200, pass.LogitsLast, nil)
	token := []int32{17}
	seg := []pass.Segment{{Seq: s, Tokens: token, Logits: pass.LogitsLast}}
	for b.Loop() {
		if s.Len() > 1200 { // stay near the front: this measures weights, not attention
			b.StopTimer()
			s.Close()
			s = newSequence(b, n)
			seg[0].Seq = s
			forward(b, s, benchPrompt(b, 200), 200, pass.LogitsLast, nil)
			b.StartTimer()
		}
		rows, err := n.Forward(context.Background(), seg)
		if err != nil {
			b.Fatal(err)
		}
		token[0] = int32(argmax(rows[0][0]))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
}

// BenchmarkResident fills two sequences to a window of 8,192 and reports the process's resident memory, the Go runtime
// and the mapped weights included.
func BenchmarkResident(b *testing.B) {
	n := load(b, pocketQ4, Options{WindowTokens: 8192, MaxSequences: 2})
	prompt := benchPrompt(b, 8192)
	for b.Loop() {
		s, other := newSequence(b, n), newSequence(b, n)
		forward(b, s, prompt, n.ChunkTokens(), pass.LogitsLast, nil)
		forward(b, other, prompt, n.ChunkTokens(), pass.LogitsLast, nil)
		s.Close()
		other.Close()
	}
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		for _, line := range strings.Split(string(status), "\n") {
			if f := strings.Fields(line); len(f) == 3 && (f[0] == "VmHWM:" || f[0] == "VmRSS:") {
				kb, _ := strconv.ParseFloat(f[1], 64)
				b.ReportMetric(kb/1024, strings.TrimSuffix(f[0], ":")+"-MiB")
			}
		}
	}
	m := n.MemoryBytes()
	b.ReportMetric(float64(m.Weights)/(1<<20), "weights-MiB")
	b.ReportMetric(float64(m.KVPages)/(1<<20), "kv-MiB")
	b.ReportMetric(float64(m.Work)/(1<<20), "work-MiB")
}
