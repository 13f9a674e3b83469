package hub

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// untilHashed waits until the journal on disk has the hash of a first segment: what a slow machine does late.
func (k *kit) untilHashed() {
	for ctx := within(k.t, time.Minute); ctx.Err() == nil; time.Sleep(time.Millisecond) {
		journals, _ := filepath.Glob(filepath.Join(k.home.Name(), "models/.partial/*.part.json"))
		for _, name := range journals {
			var j journal
			if data, err := os.ReadFile(name); err == nil && json.Unmarshal(data, &j) == nil &&
				j.HashedBytes >= testSegment {
				return
			}
		}
	}
}

// flipInPart changes a byte of the only partial file in place, before the saved hash state, and gives it back its time
// of modification: only the time of change tells.
func flipInPart(t *testing.T, k *kit, at int64) {
	t.Helper()
	parts, err := filepath.Glob(filepath.Join(k.home.Name(), "models/.partial/*.part"))
	if err != nil || len(parts) != 1 {
		t.Fatalf("%q %v", parts, err)
	}
	info, err := os.Stat(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(parts[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(parts[0], info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
}

func TestPartialFileAlteredInPlaceBehindTheSavedHash(t *testing.T) {
	for name, stop := range map[string]func(k *kit){
		"after a stop": func(k *kit) {
			ctx, cancel := context.WithCancel(within(k.t, time.Minute))
			k.hub.OnServed(func(served int64) {
				if served > 6*testSegment {
					k.untilHashed()
					cancel()
				}
			})
			if k.download(ctx) == nil {
				k.t.Fatal("the download was not interrupted")
			}
			k.hub.OnServed(nil)
			k.hub.Forget()
			k.events = nil
		},
		"after a kill": func(k *kit) {
			cmd := k.child()
			k.hub.OnServed(func(served int64) {
				if served > 8*testSegment && cmd.Process != nil {
					k.untilHashed()
					cmd.Process.Signal(syscall.SIGKILL)
				}
			})
			if err := cmd.Start(); err != nil {
				k.t.Fatal(err)
			}
			cmd.Wait()
			k.hub.OnServed(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, oneBigFile())
			k.config.Connections = 1
			stop(k)
			// longer than the time within which a change is unknown from a write of ours
			time.Sleep(100 * time.Millisecond)
			flipInPart(t, k, testSegment/2)
			if err := k.download(within(t, time.Minute)); err != nil {
				t.Fatal(err)
			}
			k.whole()
			if said := strings.Join(k.said(Notice), " "); !strings.Contains(said, "hashed again from its beginning") ||
				!strings.Contains(said, "other bytes than the lock names") {
				t.Errorf("said %q", said)
			}
		})
	}
}

// The run that sees the alteration is killed at once: its own first write hides it from the next one, which must not
// believe the hash that was saved before.
func TestPartialFileAlteredAndTheRunThatSawItKilled(t *testing.T) {
	k := newKit(t, oneBigFile())
	k.config.Connections = 1
	k.interrupted(6 * testSegment)
	time.Sleep(100 * time.Millisecond)
	flipInPart(t, k, testSegment/2)
	cmd := k.child()
	k.hub.OnServed(func(int64) {
		if cmd.Process != nil {
			cmd.Process.Signal(syscall.SIGKILL)
		}
	})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	k.hub.OnServed(nil)
	if err := k.download(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	k.whole()
	if said := strings.Join(k.said(Notice), " "); !strings.Contains(said, "other bytes than the lock names") {
		t.Errorf("said %q", said)
	}
}

// With every byte written and hashed but the last, another program changes the file: the right hash of what was there
// does not give what is there now its final name.
func TestPartialFileAlteredBetweenTheLastWriteAndTheFinalName(t *testing.T) {
	k := newKit(t, oneBigFile())
	k.interrupted(6 * testSegment)
	k.hub.OnServed(nil)
	c := k.client()
	altered := false
	err := c.Download(within(t, time.Minute), Request{Home: k.home, Lock: k.repo.Lock()}, func(e Event) {
		// The hasher tells of its last chunk before it looks at the result.
		if e.Kind == Hashed && e.From+e.Bytes == e.Total && !altered {
			altered = true
			time.Sleep(100 * time.Millisecond)
			flipInPart(t, k, testSegment/2)
		}
	})
	if err != nil || !altered {
		t.Fatalf("altered %v: %v", altered, err)
	}
	k.whole()
}

// Both journals are gone: what arrived cannot be determined from what did not, and the user is told that it starts
// over.
func TestBothJournalsGoneStartsOverAndSaysSo(t *testing.T) {
	k := newKit(t, oneBigFile())
	k.interrupted(8 * testSegment)
	journals, _ := filepath.Glob(filepath.Join(k.home.Name(), "models/.partial/*.part.json*"))
	if len(journals) != 2 {
		t.Fatalf("journals: %q", journals)
	}
	for _, j := range journals {
		if err := os.Remove(j); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.download(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	k.whole()
	if said := strings.Join(k.said(Notice), " "); !strings.Contains(said, "fetched from its beginning") {
		t.Errorf("said %q", said)
	}
}

// A pipe where the token file is read would never answer.
func TestTokenFileThatIsAPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "token"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan Config, 1)
	go func() {
		read <- ConfigFromEnv(func(name string) string { return map[string]string{"HF_HOME": dir, "HOME": dir}[name] })
	}()
	select {
	case c := <-read:
		if c.Token != "" {
			t.Errorf("a token came out of a pipe")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the token file is waited for")
	}
}

func TestTokenThatNoHeaderCanCarry(t *testing.T) {
	k := newKit(t)
	for _, token := range []string{"hf_first\nhf_second", "hf_a b", "hf_\x00", "hf_ключ"} {
		k.config.Token, k.config.TokenFrom = token, "HF_TOKEN"
		_, err := New(k.config)
		access, ok := err.(*AccessError)
		if !ok || access.Kind != TokenShape || !strings.Contains(err.Error(), "HF_TOKEN") ||
			strings.Contains(err.Error(), token) {
			t.Errorf("%q: %v", token, err)
		}
	}
	if n := len(k.hub.Log()); n != 0 {
		t.Errorf("%d requests", n)
	}
}
