package host

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestIdleServerUnloadsItsWeightsAndResumesFromDisk(t *testing.T) {
	k := startKept(t, func(s *Settings) {
		s.IdleUnload = 100 * time.Millisecond
		s.CacheDisk = filepath.Join(t.TempDir(), "cache")
	})
	conversation := []message{user(k.document(21, 800) + "\nWhat is it about?")}
	for round := 1; round <= 3; round++ {
		a := k.ask(conversation, nil)
		if round > 1 {
			k.atMost("after the weights came back", a, a.fresh+slack)
		}
		fresh := startKept(t, func(s *Settings) { s.CacheMemoryBytes = 0 })
		if want := fresh.ask(conversation, nil); want.content != a.content {
			t.Errorf("round %d: %q, a fresh server says %q", round, a.content, want.content)
		}
		fresh.stop()
		conversation = append(conversation, a.message(), user("And then?"))
		k.log.await(t, "memory is given back", round)
	}
	if got := k.host.keeper.Counters().FromDisk; got != 2 {
		t.Errorf("%d points were read from disk, wanted 2", got)
	}
}

func TestWeightsThatChangedWhileUnloadedAreRefusedAndTheServerGoesOn(t *testing.T) {
	dir := t.TempDir()
	files, err := filepath.Glob(filepath.Join(pocketDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // a folder
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k := startKept(t, func(s *Settings) { s.ModelDir, s.IdleUnload = dir, 50*time.Millisecond })
	conversation := []message{user("Hello")}
	k.ask(conversation, nil)
	k.log.await(t, "memory is given back", 1)
	weights := filepath.Join(dir, "model.safetensors")
	before, err := os.Stat(weights)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(weights, time.Now(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(k.URL+"/v1/chat/completions", "application/json",
		bytes.NewReader(body(conversation, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusInternalServerError || strings.Contains(string(raw), dir) {
		t.Errorf("status %d: %s", response.StatusCode, raw)
	}
	k.log.await(t, "start the server again", 1)
	if err := os.Chtimes(weights, time.Now(), before.ModTime()); err != nil {
		t.Fatal(err)
	}
	k.ask(conversation, nil) // as it was
}
