package neighbor

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"slipway/installer/neighbor/record"
)

func TestModelsAreUnloadedAndLoadedAgainWhileTheServerStays(t *testing.T) {
	for _, name := range []string{"ollama", "llmster"} {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t)
			d := newDouble(t, name).start()
			if name == "llmster" {
				d.lms(s)
			}
			server := d.found(s)
			d.mode("busy")
			if _, err := s.Stop(ctx, []Server{server}, StopOptions{}); err == nil || d.count("unload") != 0 {
				t.Fatalf("unloaded while busy (%v)", err)
			}
			d.mode("idle")
			records, err := s.Stop(ctx, []Server{server}, StopOptions{})
			if err != nil || d.count("unload") != 1 {
				t.Fatalf("%v, log %q", err, d.log())
			}
			// What was only unloaded is not called stopped.
			waits, err := s.Pending()
			if err != nil || len(waits) != 1 ||
				!strings.Contains(waits[0].Sentence, "is unloaded while slipway runs") ||
				strings.Contains(waits[0].Sentence, "stopped") {
				t.Errorf("%+v, %v", waits, err)
			}
			if again := d.found(s); len(again.Models) != 0 || again.PID != server.PID || again.Channel != "" {
				t.Errorf("after unloading: %+v", again)
			}
			o := s.restoreOne(ctx, records[0], nil)
			if o.Result != Restored || !strings.Contains(o.Sentence, "is loaded again") {
				t.Errorf("%+v", o)
			}
			if log := strings.Join(d.log(), "\n"); !strings.Contains(log, "with 8192 tokens") || name == "llmster" &&
				!strings.Contains(log, "4 at once") {
				t.Errorf("it was loaded with other settings: %q", log)
			}
			if again := d.found(s); !sameModels(server.loaded, again.loaded) || d.count("load") != 1 ||
				d.count("end") != 0 {
				t.Errorf("models %+v, log %q", again.Models, d.log())
			}
		})
	}
}

// lms installs LM Studio's command, and the file with the port, in the user's home.
func (d *double) lms(s *System) {
	d.t.Helper()
	home := filepath.Join(s.UserHome, ".lmstudio")
	for _, folder := range []string{"bin", ".internal"} {
		os.MkdirAll(filepath.Join(home, folder), 0o700)
	}
	if err := os.Symlink(program(d.t, "lms"), filepath.Join(home, "bin", "lms")); err != nil {
		d.t.Fatal(err)
	}
	b, _ := json.Marshal(map[string]any{"port": d.port, "networkInterface": "127.0.0.1"})
	os.WriteFile(filepath.Join(home, ".internal", "http-server-config.json"), b, 0o600)
}

func TestServerOfAnApplicationIsStoppedThroughItsControlSocket(t *testing.T) {
	s := newSystem(t)
	// A UNIX socket's path may have 104 bytes on a Mac: the test's own folder would be too deep.
	userHome, err := os.MkdirTemp("/tmp", "nb")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(userHome)
	s.UserHome = userHome
	inside := filepath.Join(t.TempDir(), "oMLX.app", "Contents", "MacOS", "omlx")
	os.MkdirAll(filepath.Dir(inside), 0o700)
	b, err := os.ReadFile(program(t, "omlx"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(inside, b, 0o700); err != nil {
		t.Fatal(err)
	}
	d := newDouble(t, "omlx", withProgram(inside)).start()
	server := d.found(s)
	if server.Channel != record.ChannelApp || server.Starter.Type != "app" {
		t.Fatalf("channel %q, starter %+v, refusal %q", server.Channel, server.Starter, server.Refusal)
	}
	if _, err := s.Stop(ctx, []Server{server}, StopOptions{}); err == nil || d.count("end") != 0 {
		t.Fatalf("without the application's socket: %v", err)
	}
	for _, r := range must(s.folder().List()) {
		s.folder().Delete(r.ID)
	}
	manages := server.PID + 1
	socket := filepath.Join(s.UserHome, omlx.socket)
	os.MkdirAll(filepath.Dir(socket), 0o700)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(c).ReadString('\n')
			answer := map[string]any{"ok": true, "state": "running", "pid": manages}
			switch {
			case strings.Contains(line, "stop"):
				syscall.Kill(server.PID, syscall.SIGTERM)
			case strings.Contains(line, "start"):
				d.launch()
			}
			json.NewEncoder(c).Encode(answer)
			c.Close()
		}
	}()
	if _, err := s.Stop(ctx, []Server{server}, StopOptions{}); err == nil || d.count("end") != 0 {
		t.Fatalf("the application manages another server: %v, log %q", err, d.log())
	}
	for _, r := range must(s.folder().List()) {
		s.folder().Delete(r.ID)
	}
	manages = server.PID
	records, err := s.Stop(ctx, []Server{server}, StopOptions{})
	if err != nil || d.count("end") != 1 {
		t.Fatalf("%v, log %q", err, d.log())
	}
	if o := s.restoreOne(ctx, records[0], nil); o.Result != Restored || d.count("start") != 2 {
		t.Errorf("%+v, log %q", o, d.log())
	}
}
