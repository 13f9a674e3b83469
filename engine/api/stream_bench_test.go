package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// One streamed reply over a real connection. What the tokens cost is the difference between two lengths: the benchmark
// reports the allocations for each token of the reply.
func BenchmarkStreamedReply(b *testing.B) {
	for name, members := range map[string]string{"Plain": "", "Tools": twoTools, "Stop": `,"stop":["@@"]`} {
		b.Run(name, func(b *testing.B) {
			s := start(b, setup{window: 4096})
			say := strings.Repeat("one two three ", 300)
			s.say(say)
			body := chat(members + thinkingOff + `,"stream":true,"max_tokens":800`)
			b.ReportAllocs()
			for b.Loop() {
				response, err := http.Post(s.URL+chatPath, "application/json", strings.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
			b.ReportMetric(800*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
