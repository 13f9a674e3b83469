package neighbor

import (
	"slices"
	"strings"
	"testing"

	"slipway/installer/process"
)

// foundAmong is the one server with this pid that Find lists.
func foundAmong(t *testing.T, s *System, pid int) Server {
	t.Helper()
	servers, err := s.Find(ctx)
	if err != nil {
		t.Fatal(err)
	}
	servers = slices.DeleteFunc(servers, func(f Server) bool { return f.PID != pid })
	if len(servers) != 1 {
		t.Fatalf("pid %d is listed %d times: %+v", pid, len(servers), servers)
	}
	return servers[0]
}

func TestProcessWithTwoPortsIsOneServerAndIsStoppedOnce(t *testing.T) {
	s := newSystem(t)
	monitor := freePort(t)
	d := newDouble(t, "slipway-server", withArgs("serve", "--monitor-port", itoa(monitor))).start()
	s.ExtraPorts = []int{d.port, monitor}
	want := []int{d.port, monitor}
	slices.Sort(want)
	server := foundAmong(t, s, d.running()[0])
	if !slices.Equal(server.Ports, want) || server.Kind != "slipway" {
		t.Errorf("%s with ports %v, want %v", server.Kind, server.Ports, want)
	}
	for _, port := range want {
		list, err := s.At(ctx, port)
		if err != nil || len(list) != 1 || !slices.Equal(list[0].Ports, want) {
			t.Errorf("at %d: %+v, %v", port, list, err)
		}
		if conflicts := Conflicts([]Server{server}, Need{Port: port}); len(conflicts) != 1 ||
			!strings.Contains(conflicts[0].Why, "has port "+itoa(port)) {
			t.Errorf("conflict over %d: %+v", port, conflicts)
		}
	}
	records, err := s.Stop(ctx, []Server{server}, StopOptions{})
	if err != nil || len(records) != 1 || d.count("end") != 1 {
		t.Fatalf("%+v, %v, log %q", records, err, d.log())
	}
	if o := s.restoreOne(ctx, records[0], nil); o.Result != Restored {
		t.Errorf("%+v", o)
	}
}

// withChild makes a double that starts another one when it starts.
func withChild(t *testing.T, name, mode string) (parent, child *double) {
	t.Helper()
	parent, child = newDouble(t, name), newDouble(t, "llama-server")
	parent.set("child", strings.Join(child.argv(), "\n")).mode(mode).start()
	child.listens()
	return parent, child
}

func TestChildBelongsToItsParent(t *testing.T) {
	for name, mode := range map[string]string{"llama-server": "router", "ollama": "idle"} {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t)
			parent, child := withChild(t, name, mode)
			pid := parent.running()[0]
			server := foundAmong(t, s, pid)
			if !server.Listens(child.port) || !server.Listens(parent.port) || server.Port != parent.port {
				t.Errorf("port %d of %v", server.Port, server.Ports)
			}
			if found := child.found(s); found.PID != pid || found.Kind != server.Kind {
				t.Errorf("at the child's port: %+v", found)
			}
			servers, err := s.Find(ctx)
			if err != nil || slices.ContainsFunc(servers, func(f Server) bool { return f.PID == child.running()[0] }) {
				t.Errorf("the child is listed: %v", err)
			}
			// Its memory is that of both.
			if alone, err := process.FootprintBytes(pid); err != nil || server.FootprintBytes < alone*5/4 {
				t.Errorf("%d bytes, the parent alone %d, %v", server.FootprintBytes, alone, err)
			}
		})
	}
}

func TestRouterIsIdleWhenEachChildIs(t *testing.T) {
	s := newSystem(t)
	router, child := withChild(t, "llama-server", "router")
	server := router.found(s)
	if !server.Stoppable() {
		t.Fatalf("refused: %s", server.Refusal)
	}
	for _, row := range []struct {
		router, child string
		want          State
		why           string
	}{
		{"router", "idle", StateIdle, ""},
		{"router", "sleeping", StateIdle, ""},
		{"router", "busy", StateBusy, "its child on port " + itoa(child.port) + ": slot 0 works"},
		{"router", "moving", StateBusy, "id_task moved"},
		{"router", "protected", StateUnknown, "its child on port " + itoa(child.port) + ": /props wants a key"},
		{"router-two", "idle", StateUnknown, "2 models are loaded, and only 1 of its children can be asked"},
		{"router-loading", "idle", StateBusy, "loading a model"},
	} {
		router.mode(row.router)
		child.mode(row.child)
		idle := s.ProveIdle(ctx, server, s.Timing)
		if idle.State != row.want || !strings.Contains(strings.Join(idle.Reasons, "; "), row.why) {
			t.Errorf("%s with a child that is %s: %s %q", row.router, row.child, idle.State, idle.Reasons)
		}
	}
	if child.count("woken") != 0 {
		t.Errorf("log of the child: %q", child.log())
	}
	router.mode("router")
	child.mode("idle")
	records, err := s.Stop(ctx, []Server{server}, StopOptions{})
	if err != nil || len(router.running())+len(child.running()) != 0 {
		t.Fatalf("%v, running %v and %v", err, router.running(), child.running())
	}
	if o := s.restoreOne(ctx, records[0], nil); o.Result != Restored {
		t.Errorf("%+v", o)
	}
}

func TestLookDoesNotWakeASleepingServer(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "llama-server").mode("sleeping").start()
	s.ExtraPorts = []int{d.port}
	servers, err := s.Look(ctx)
	i := slices.IndexFunc(servers, func(f Server) bool { return f.Port == d.port })
	if err != nil || i < 0 || servers[i].State != StateIdle {
		t.Fatalf("%+v, %v", servers, err)
	}
	if d.count("woken") != 0 {
		t.Errorf("log %q", d.log())
	}
	// It wakes between two samples: a request came.
	before := s.sample(ctx, servers[i], false)
	d.mode("idle")
	if idle := judge([]sample{before, s.sample(ctx, servers[i], false)}); idle.State != StateBusy {
		t.Errorf("woken in between: %+v", idle)
	}
}

func TestKindIsNamedByItsIdOrItsTitle(t *testing.T) {
	for name, want := range map[string]string{"llama.cpp": "llama.cpp", "llama-server": "llama.cpp", "mtplx": "mtplx",
		"MTPLX": "mtplx", "LM Studio": "lmstudio", "ollama": "ollama", "mlx_lm.server": "mlx_lm",
		"slipway": "slipway"} {
		if id, ok := KindNamed(name); !ok || id != want {
			t.Errorf("%s is %q", name, id)
		}
	}
	for _, name := range []string{"", "unknown", "llama", "server"} {
		if id, ok := KindNamed(name); ok {
			t.Errorf("%q is %q", name, id)
		}
	}
}
