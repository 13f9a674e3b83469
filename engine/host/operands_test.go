package host

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wideModel is Pocket with the first layer's normed input 2^17 times as large: its activations leave f16's range, and
// the norms that follow bring them back.
func wideModel(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "wide")
	if err := os.CopyFS(dir, os.DirFS(pocketDir)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "model.safetensors")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var header map[string]struct {
		DType   string `json:"dtype"`
		Offsets []int  `json:"data_offsets"`
	}
	length := binary.LittleEndian.Uint64(data)
	if err := json.Unmarshal(data[8:8+length], &header); err != nil {
		t.Fatal(err)
	}
	scaled := 0
	for name, tensor := range header {
		if !strings.HasSuffix(name, "layers.0.input_layernorm.weight") || strings.Contains(name, "mtp") {
			continue
		}
		if tensor.DType != "BF16" {
			t.Fatalf("%s is %s", name, tensor.DType)
		}
		values := data[8+length:][tensor.Offsets[0]:tensor.Offsets[1]]
		for i := 0; i < len(values); i += 2 {
			x := math.Float32frombits(uint32(binary.LittleEndian.Uint16(values[i:]))<<16) * (1 << 17)
			binary.LittleEndian.PutUint16(values[i:], uint16(math.Float32bits(x)>>16))
			scaled++
		}
	}
	if scaled == 0 {
		t.Fatal("no norm was found")
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A model that f16 cannot hold is served in bf16: named, under another key, and never where f16 was insisted on.
func TestActivationsBeyondF16AreServedInBF16(t *testing.T) {
	opt := with(t, "", "", "")
	onGPU := fakeGPU(&opt, false)
	wide := wideModel(t)
	on := func(model, operands string) func(*Settings) {
		return func(s *Settings) {
			s.ModelDir, s.Operands, s.Device, s.WindowTokens, s.Accelerator = model, operands, "metal", 512, onGPU
		}
	}
	plain := startKept(t, on(pocketDir, "auto"))
	if plain.host.bf16 || !strings.HasPrefix(plain.host.key.Numerics, "metal-f16-") {
		t.Errorf("numerics %s of a model that fits", plain.host.key.Numerics)
	}
	k := startKept(t, on(wide, "auto"))
	if !strings.HasPrefix(k.host.key.Numerics, "metal-bf16-") || len(k.host.key.Differences(plain.host.key)) == 0 ||
		!strings.Contains(strings.Join(k.host.notes, "\n"), "multiplied in bf16") || len(k.host.gpu.Degraded()) != 0 {
		t.Errorf("numerics %s, notes %q, degraded %q", k.host.key.Numerics, k.host.notes, k.host.gpu.Degraded())
	}
	a := k.ask([]message{user("Hello, what can you do for me on this fine day?")}, message{"max_tokens": 3})
	if a.prompt < 10 {
		t.Errorf("a prompt of %d tokens, which decode's kernels multiply", a.prompt)
	}
	response, err := http.Get(k.URL + "/slipway/requests")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if page, _ := io.ReadAll(response.Body); !strings.Contains(string(page), `"numerics":"metal-bf16-`) {
		t.Errorf("missing: %s", page)
	}
	s := Settings{ModelDir: wide, Device: "metal", Operands: "f16", WindowTokens: 512, Parallel: 1, Accelerator: onGPU,
		Log: slog.New(slog.DiscardHandler)}
	if h, err := Open(s); err == nil || !strings.Contains(err.Error(), "start the server with --operands bf16") {
		t.Errorf("f16 was insisted on: %v", err)
		h.Close(0)
	}
}
