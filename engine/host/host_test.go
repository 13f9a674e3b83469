package host

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/engine/api"
	"slipway/engine/device"
	"slipway/engine/device/cpu"
	"slipway/engine/memory/disk"
)

// cpuGPU is an accelerator whose GPU is the CPU. It counts what is open.
type cpuGPU struct {
	open    int
	missing error
}

func (a *cpuGPU) Name() string             { return "metal" }
func (a *cpuGPU) Missing() error           { return a.missing }
func (a *cpuGPU) Preferred() bool          { return true }
func (a *cpuGPU) KVFormats() []string      { return []string{"f16", "q8"} }
func (a *cpuGPU) OperandFormats() []string { return []string{"f16", "bf16"} }

func (a *cpuGPU) Open(device.AcceleratorOptions) (device.GPU, error) {
	a.open++
	return countedGPU{cpu.New(1), a}, nil
}

type countedGPU struct {
	device.Device
	a *cpuGPU
}

func (g countedGPU) Degraded() []string  { return nil }
func (g countedGPU) GPUSeconds() float64 { return 0 }
func (g countedGPU) Ready(context.Context, func(done, total int64)) (device.Residency, error) {
	return device.Residency{}, nil
}

func (g countedGPU) Close() error {
	g.a.open--
	return g.Device.Close()
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func pocketOn(a *cpuGPU) Settings {
	return Settings{ModelDir: pocketDir, ModelID: "pocket", Version: "v", Device: "auto", Operands: "auto",
		WindowTokens: 1024, Parallel: 1, Queue: 2,
		CacheMemoryBytes: 64 << 20, Accelerator: a, Log: quiet()}
}

func TestOpenedModelAnswersAndCloseGivesEverythingBack(t *testing.T) {
	a := &cpuGPU{}
	s := pocketOn(a)
	s.CacheDisk, s.CacheDiskBytes = filepath.Join(t.TempDir(), "cache"), 1<<30
	h, err := Open(s)
	if err != nil {
		t.Fatal(err)
	}
	if a.open != 1 {
		t.Fatalf("%d devices are open", a.open)
	}
	ctx, cut := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- h.Run(ctx) }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listeners := NewListeners(api.New(
		h.Answers(api.Options{ModelID: "pocket", Version: "v", BodyBytes: 1 << 20, KeepAlive: time.Hour, Now: time.Now,
			Log: s.Log})), listener, nil, s.Log)
	defer listeners.Cut()
	response, err := http.Post("http://"+listener.Addr().String()+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"pocket","messages":[{"role":"user","content":"Hello"}],"max_tokens":3}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(response.Body)
	response.Body.Close()
	if response.StatusCode != http.StatusOK || !strings.Contains(string(answer), `"completion_tokens":`) {
		t.Errorf("status %d: %s", response.StatusCode, answer)
	}
	cut()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	h.Close(time.Minute)
	freed(t, a, s.CacheDisk)
}

// freed checks that no device is open and that the cache folder can be taken by another server.
func freed(t *testing.T, a *cpuGPU, dir string) {
	t.Helper()
	if a.open != 0 {
		t.Errorf("%d devices are open", a.open)
	}
	if _, err := os.Stat(dir); err != nil {
		return // never made
	}
	if err := disk.Clear(dir); err != nil {
		t.Errorf("the cache folder is still in use: %v", err)
	}
}

func TestFailedOpenFreesEverything(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Settings)
		says   string
	}{
		{"no model", func(s *Settings) { s.ModelDir = t.TempDir() }, "cannot be loaded"},
		{"a window beyond the model's", func(s *Settings) { s.WindowTokens = 1 << 20 }, "the model's own window is"},
		{"no sequences", func(s *Settings) { s.Parallel = 0 }, "parallel is 0"},
		{"a cache folder with other files", func(s *Settings) { s.CacheDisk = pocketDir }, "holds other files"},
		{"a disk cache that is too small", func(s *Settings) { s.CacheDiskBytes = 1 }, "holds no restore point"},
		{"a queue that cannot be", func(s *Settings) { s.Queue = -1 }, "cannot be served"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &cpuGPU{}
			s := pocketOn(a)
			s.CacheDisk, s.CacheDiskBytes = filepath.Join(t.TempDir(), "cache"), 1<<30
			dir := s.CacheDisk
			c.change(&s)
			h, err := Open(s)
			if h != nil || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("host %v, error %v", h, err)
			}
			freed(t, a, dir)
		})
	}
}

func TestSettingsAreRefusedBeforeADeviceIsOpened(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*Settings)
		missing error
		says    string
	}{
		{"unknown device", func(s *Settings) { s.Device = "tpu" }, nil, "there are auto, cpu and metal"},
		{"a GPU that is not here", func(s *Settings) { s.Device = "metal" }, errors.New("no GPU"),
			"--device metal: no GPU; use --device cpu"},
		{"no accelerator", func(s *Settings) { s.Device, s.Accelerator = "metal", nil }, nil, "there are auto and cpu"},
		{"unknown operands", func(s *Settings) { s.Operands = "f8" }, nil, "there are auto, f16 and bf16"},
		{"operands on the CPU", func(s *Settings) { s.Device, s.Operands = "cpu", "bf16" }, nil,
			"the CPU multiplies in f32"},
		{"unknown format", func(s *Settings) { s.KV = "q4" }, nil, "there are f16, q8 on metal and f32 on cpu"},
		{"8 bit on the CPU", func(s *Settings) { s.Device, s.KV = "cpu", "q8" }, nil, "would save nothing"},
		{"f32 on the GPU", func(s *Settings) { s.KV = "f32" }, nil, "or --device cpu for f32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &cpuGPU{missing: c.missing}
			s := pocketOn(a)
			s.ModelDir = "nowhere"
			c.change(&s)
			h, err := Open(s)
			var setting *SettingError
			if h != nil || !errors.As(err, &setting) || !strings.Contains(err.Error(), c.says) || a.open != 0 {
				t.Errorf("host %v, error %v, %d devices", h, err, a.open)
			}
		})
	}
}

func TestDoorAnswersHealthAloneWhileTheModelLoads(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	options := api.Options{ModelID: "pocket", Version: "v", BodyBytes: 1 << 20, KeepAlive: time.Hour, Now: time.Now,
		Log: quiet()}
	listeners := NewListeners(api.New(options), listener, nil, options.Log)
	at := "http://" + listener.Addr().String()
	status := func(path string) int {
		t.Helper()
		response, err := http.Get(at + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	if got := status("/health"); got != http.StatusOK {
		t.Errorf("health is %d", got)
	}
	if got := status("/v1/models"); got != http.StatusServiceUnavailable {
		t.Errorf("models are %d", got)
	}
	h, err := Open(pocketOn(&cpuGPU{}))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(0)
	listeners.Serve(api.New(h.Answers(options)))
	if got := status("/v1/models"); got != http.StatusOK {
		t.Errorf("models of the open listeners are %d", got)
	}
	listeners.Close(time.Minute)
	if response, err := http.Get(at + "/health"); err == nil {
		response.Body.Close()
		t.Error("closed listeners answer")
	}
}
