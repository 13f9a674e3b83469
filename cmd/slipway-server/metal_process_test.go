package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/metal/cpurun"
	"slipway/wire"
)

// fakeMetalBuilt is where fakeMetal put the program, for TestMain to remove.
var fakeMetalBuilt string

var fakeMetal = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "slipway-server-fakemetal-*")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "slipway-server")
	build := exec.Command("go", "build", "-tags", "fakemetal", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		return "", &exec.Error{Name: string(out), Err: err}
	}
	fakeMetalBuilt = path
	return path, nil
})

// fakeCommand is the server whose Metal is the fake.
func fakeCommand(t *testing.T, env string, args ...string) *exec.Cmd {
	t.Helper()
	cpurun.Need(t)
	path, err := fakeMetal()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(path, args...)
	c.Env = append(os.Environ(), env)
	return c
}

func TestProbeShowsTheGPU(t *testing.T) {
	code, out, errOut := finish(t, fakeCommand(t, "", "probe"))
	var p wire.Probe
	if err := json.Unmarshal([]byte(out), &p); err != nil || code != 0 || errOut != "" {
		t.Fatalf("exit %d, %v, stderr %q", code, err, errOut)
	}
	if p.GPU == nil || p.GPU.AppleFamily != 9 || !p.GPU.UnifiedMemory || p.GPU.WorkingSetBytes != 16<<30 ||
		*p.RecommendedMaxWorkingSet != 16<<30 || *p.MaxBufferLength != 8<<30 {
		t.Errorf("%s", out)
	}
	if !slices.Equal(p.Devices, []string{"cpu", "metal"}) ||
		!slices.Equal(p.Capabilities.KVFormats, []string{"f32", "f16", "q8"}) ||
		!slices.Equal(p.Capabilities.KVFormatsOf["metal"], []string{"f16", "q8"}) ||
		!slices.Equal(p.Capabilities.KVFormatsOf["cpu"], []string{"f32"}) {
		t.Errorf("%s", out)
	}
}

func TestSelfTestFindsABrokenKernel(t *testing.T) {
	for _, c := range []struct {
		name, broken string
		code         int
		degraded     []string
		refusal      string
	}{
		{"all right", "", 0, nil, ""},
		{"two fast kernels that do not compile", "linear_gemm,rms_norm", 0, []string{"linear_gemm cannot be used here",
			"rms_norm cannot be used here"}, ""},
		{"plain kernels that nothing needs", "rms_norm_plain,linear_plain", 0,
			[]string{"rms_norm_plain cannot be used here", "linear_plain cannot be used here"}, ""},
		{"a fast kernel and its plain one", "rms_norm,rms_norm_plain", exitMetal, nil,
			"its replacement rms_norm_plain cannot be used either"},
		{"a kernel without another variant that does not compile", "swiglu", exitMetal, nil, "kernel swiglu"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errOut := finish(t, fakeCommand(t, "SLIPWAY_FAKE_BROKEN="+c.broken, "selftest", "--quick",
				"--json"))
			var s wire.SelfTest
			if err := json.Unmarshal([]byte(out), &s); err != nil || code != c.code || s.Passed != (code == 0) ||
				!s.Quick || s.GPU == nil || len(s.Degraded) != len(c.degraded) {
				t.Fatalf("exit %d, %v, stderr %q, %s", code, err, errOut, out)
			}
			for i, want := range c.degraded {
				if !slices.ContainsFunc(s.Degraded, func(d string) bool {
					return strings.HasPrefix(d, want) &&
						strings.Contains(d, "this is no kernel")
				}) {
					t.Errorf("%d: %q, wanted %q", i, s.Degraded, want)
				}
			}
			if !strings.Contains(s.Refusal, c.refusal) || !strings.Contains(errOut, c.refusal) {
				t.Errorf("refusal %q, stderr %q", s.Refusal, errOut)
			}
		})
	}
}

func TestSelfTestIsRefusedWithoutMetal(t *testing.T) {
	if accelerator.Missing() == nil {
		t.Skip("this machine has Metal, so nothing is missing here")
	}
	code, out, errOut := finished(t, "selftest")
	if code != exitUsage || out != "" || !strings.Contains(errOut, "there is nothing to test") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, out, errOut)
	}
}

// The product's host code and kernels, from HTTP to dispatches: an answer, a kernel that does not compile named and
// gone around, points dropped where memory is short, and no prompt begun where it runs out.
func TestServerOnMetalAnswers(t *testing.T) {
	pressure := filepath.Join(t.TempDir(), "pressure")
	say := func(what string) {
		if err := os.WriteFile(pressure+".new", []byte(what), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(pressure+".new", pressure); err != nil { // never half
			t.Fatal(err)
		}
	}
	say("normal")
	c := fakeCommand(t, "SLIPWAY_FAKE_MEMORY="+pressure, "serve", "--model", pocketDir, "--port", "0", "--device",
		"metal", "--window", "1024")
	c.Env = append(c.Env, "SLIPWAY_FAKE_BROKEN=linear_gemm")
	p := begin(t, c)
	body := strings.Replace(hello, `"stream":true`, `"stream":true,"max_tokens":6`, 1)
	ask := func(p *process) string {
		t.Helper()
		response := p.post(t, body)
		text, _, whole := streamed(t, response.Body)
		if response.StatusCode != 200 || text == "" || !whole {
			t.Fatalf("status %d, %q, whole %v: %s", response.StatusCode, text, whole, p.said())
		}
		return text
	}
	if got, want := ask(p), ask(serving(t, "--device", "cpu")); got != want {
		t.Errorf("Metal says %q, the CPU %q", got, want)
	}
	for _, line := range []string{"linear_gemm cannot be used here", "linear_plain replaces it", "device=metal",
		"weights on the GPU"} {
		if !strings.Contains(p.said(), line) {
			t.Errorf("the log does not say %q: %s", line, p.said())
		}
	}
	say("warning")
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(p.said(), "restore points that nothing uses "+
		"are given back"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no point is dropped: %s", p.said())
		}
	}
	ask(p)
	say("critical")
	response := p.post(t, body)
	text, _ := io.ReadAll(response.Body)
	if response.StatusCode != 503 || response.Header.Get("Retry-After") == "" ||
		!strings.Contains(string(text), "1.0 GiB of 16.0 GiB are free") ||
		!strings.Contains(string(text), "memory_short") {
		t.Errorf("status %d, %s", response.StatusCode, text)
	}
	say("normal")
	ask(p)
	get := func(path string) []byte {
		response, err := http.Get(p.url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return body
	}
	metrics := string(get("/metrics"))
	var watched struct{ GPU wire.GPU }
	if err := json.Unmarshal(get("/slipway/system"), &watched); err != nil {
		t.Fatal(err)
	}
	for phase, told := range map[string]wire.GPUPhase{"prefill": watched.GPU.Prefill, "decode": watched.GPU.Decode} {
		if told.Seconds <= 0 || told.Passes < 3 { // of three replies
			t.Errorf("%s: %+v", phase, told)
		}
		for _, line := range []string{fmt.Sprintf("slipway_gpu_seconds_total{phase=%q} %v\n", phase, told.Seconds),
			fmt.Sprintf("slipway_gpu_passes_total{phase=%q} %d\n", phase, told.Passes)} {
			if !strings.Contains(metrics, line) {
				t.Errorf("no %q in %s", line, metrics)
			}
		}
	}
}
