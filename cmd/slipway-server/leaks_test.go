package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// rests waits until nothing is active.
func (p *process) rests(t *testing.T) {
	t.Helper()
	for range 1200 {
		h := getJSON[struct{ Active, Queued int }](t, p.url+"/health")
		if h.Active == 0 && h.Queued == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("requests that nobody waits for stay active")
}

func (p *process) ownBytes(t *testing.T) int64 {
	t.Helper()
	m := getJSON[struct {
		Machine struct {
			Own       *int64 `json:"own_bytes"`
			RAM       *int64 `json:"ram_bytes"`
			Available *int64 `json:"available_bytes"`
		}
	}](t, p.url+"/slipway/system").Machine
	if m.Own == nil || m.RAM == nil || m.Available == nil || *m.Own < 1<<20 || *m.Available <= 0 ||
		*m.RAM < *m.Available {
		t.Fatalf("of the machine's memory the server tells %+v", m)
	}
	return *m.Own
}

// files is how many the server has open; -1 where the system does not tell, which no more than itself is.
func (p *process) files(t *testing.T) int {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	list, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(p.Process.Pid), "fd"))
	if err != nil && runtime.GOOS == "linux" {
		t.Fatal(err)
	}
	if err != nil {
		return -1
	}
	return len(list)
}

// goroutines ends the server with SIGQUIT, at which Go writes the stack of each.
func (p *process) goroutines(t *testing.T) int {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	time.Sleep(200 * time.Millisecond) // connections that were just closed end
	p.Process.Signal(syscall.SIGQUIT)
	p.ended(t)
	n := len(regexp.MustCompile(`(?m)^goroutine \d+ `).FindAllString(p.said(), -1))
	if n < 2 {
		t.Fatalf("no stacks: %s", p.said())
	}
	return n
}

var counted = regexp.MustCompile(`(?m)^(slipway_\S+) (\S+)$`)

func (p *process) scrape(t *testing.T) map[string]int {
	t.Helper()
	response, err := http.Get(p.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var text bytes.Buffer
	if _, err := io.Copy(&text, response.Body); err != nil {
		t.Fatal(err)
	}
	values := map[string]int{}
	for _, found := range counted.FindAllStringSubmatch(text.String(), -1) {
		value, err := strconv.ParseFloat(found[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		values[found[1]] = int(value)
	}
	return values
}
