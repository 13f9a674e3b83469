package main

import (
	"net/http"
	"slices"
	"testing"
	"time"
)

// /health while thirty clients ask, leave and cancel, against the same server at rest before. One iteration is 300
// requests of the clients; what counts is how long the answers of /health took, in milliseconds.
func BenchmarkHealthUnderLoad(b *testing.B) {
	p := serving(b, "--window", "512", "--parallel", "4", "--queue", "16", "--cache-memory", "16777216")
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 40}}
	defer client.CloseIdleConnections()
	f := &flood{}
	f.run(p, client, 30, 1)

	rest := f.healthDuring(p, func() { time.Sleep(2 * time.Second) })
	load := f.healthDuring(p, func() {
		for b.Loop() {
			f.run(p, client, 300, 2)
		}
	})
	for _, problem := range f.problems {
		b.Error(problem)
	}
	b.ReportMetric(milliseconds(quantile(rest, 0.99)), "rest-p99-ms")
	b.ReportMetric(milliseconds(quantile(load, 0.50)), "load-p50-ms")
	b.ReportMetric(milliseconds(quantile(load, 0.99)), "load-p99-ms")
	b.ReportMetric(float64(len(load)), "answers")
}

// healthDuring asks for the health until during has returned.
func (f *flood) healthDuring(p *process, during func()) []time.Duration {
	took, stop := make(chan []time.Duration, 1), make(chan struct{})
	go func() { took <- f.askHealth(p, stop) }()
	during()
	close(stop)
	return <-took
}

// quantile is the smallest value that a share of all does not exceed; 0 of none.
func quantile(of []time.Duration, share float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
