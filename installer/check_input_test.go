package installer

import (
	"errors"
	"strings"
	"testing"

	"slipway/installer/machine"
	"slipway/installer/plan"
	"slipway/manifests"
)

// What flags cannot say, a plan file, the settings of a home or another caller can.
func TestImpossibleRequestIsRefusedWhoeverMakesIt(t *testing.T) {
	for _, c := range []struct {
		request plan.Request
		names   string
	}{
		{plan.Request{Draft: "eagle"}, `--draft is "eagle"; it is mtp, dflash2 or none`},
		{plan.Request{Port: 65536}, "--port is 65536"},
		{plan.Request{Port: -1}, "--port is -1"},
		{plan.Request{MonitorPort: 70000}, "--monitor-port is 70000"},
		{plan.Request{Port: 9000, MonitorPort: 9000}, "--port and --monitor-port are both 9000"},
		{plan.Request{Port: DefaultMonitorPort}, "--port and --monitor-port are both 8010"},
		{plan.Request{DiskCacheBytes: 1 << 20}, "--disk-cache is 1"},
		{plan.Request{DiskCacheBytes: -2}, "--disk-cache is"},
		{plan.Request{IdleForS: 14}, "--idle-for is 14s, and must be whole seconds from 15s to 1h"},
		{plan.Request{IdleForS: 3601}, "--idle-for is 3601s"},
		{plan.Request{MemoryBytes: -1}, "--memory is -1"},
		{plan.Request{AllowStop: "nobody"}, `--allow-stop is "nobody"`},
		{plan.Request{Normalize: "{"}, "--normalize-file"},
		{plan.Request{Normalize: "[]"}, "--normalize-file"},
		{plan.Request{Profile: "fastest"}, `there is no profile "fastest"`},
		{plan.Request{Model: "gpt"}, `there is no model "gpt"`},
	} {
		dir := t.TempDir()
		_, err := Prepare(t.Context(), Input{Home: dir + "/home", Request: c.request}, Environment{UserHome: dir,
			WorkingDir: dir, Executable: dir + "/slipway", Sources: machine.System(), Getenv: func(string) string {
				return ""
			}})
		if refused, ok := errors.AsType[*ChoiceError](err); !ok || !strings.Contains(refused.Why, c.names) {
			t.Errorf("%+v: %v, wanted %q", c.request, err, c.names)
		}
	}
	if err := (Input{LimitBytesPerSec: -1}).Check(); err == nil || !strings.Contains(err.Error(), "--limit-rate") {
		t.Errorf("a rate below nothing: %v", err)
	}
	for _, r := range []plan.Request{{}, {Port: 1, MonitorPort: 65535, DiskCacheBytes: plan.DiskCacheOff,
		IdleForS: 15, Draft: "none"}, {IdleForS: 3600, Draft: "dflash2", DiskCacheBytes: 20 << 30}} {
		if err := (Input{Request: r}).Check(); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestUnknownDraftIsRefusedWhereItIsChosen(t *testing.T) {
	var facts machine.Facts
	facts.RAM = machine.Fact[int64]{Value: 96 << 30, Known: true}
	in := Input{Request: plan.Request{Model: "pocket", Profile: "exact", Draft: "eagle"}}
	_, err := choose(in, facts, known{models: manifests.All()}, capabilitiesOn("linux", "amd64"))
	if _, ok := errors.AsType[*ChoiceError](err); !ok {
		t.Errorf("an unknown draft: %v", err)
	}
}
