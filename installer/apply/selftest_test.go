package apply

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slipway/installer/launch"
	"slipway/installer/plan"
)

// metalServer puts a server whose Metal is the fake into a home. Of its kernel files one does not compile. Each run
// leaves a line in the file runs.
func metalServer(t *testing.T, home *Home, broken string) (settings launch.Settings, runs string) {
	t.Helper()
	if _, err := exec.LookPath("clang++-22"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("clang++-22 is not installed, so kernels cannot be run on the CPU")
	}
	real, dir := filepath.Join(t.TempDir(), "slipway-server"), filepath.Join(home.Path, "engines", "e")
	build := exec.Command("go", "build", "-tags", "fakemetal", "-o", real, "slipway/cmd/slipway-server")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	runs = filepath.Join(t.TempDir(), "runs")
	script := "#!/bin/sh\necho run >> '" + runs + "'\nSLIPWAY_FAKE_BROKEN=" + broken + " exec '" + real +
		"' \"$@\" --quick\n"
	if err := os.WriteFile(filepath.Join(dir, "slipway-server"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return launch.Settings{Program: "engines/e/slipway-server", ProgramSHA256: "sha256:aa", Device: "metal"}, runs
}

func TestReceiptNamesABrokenKernel(t *testing.T) {
	home := makeHome(t)
	settings, runs := metalServer(t, home, "linear_gemm")
	notes, err := provenMetal(t.Context(), home, settings, silent)
	if err != nil || !strings.HasPrefix(notes[selfTestNote], "passed: ") ||
		!strings.Contains(notes[degradedNote], "linear_gemm cannot be used here") ||
		!strings.Contains(notes[degradedNote], "linear_plain replaces it") {
		t.Fatalf("%v, %q", err, notes)
	}
	if err := home.writeReceipt(Receipt{Digest: "sha256:" + strings.Repeat("1", 64),
		Actions: []Done{{ID: "launch", Notes: notes}}}); err != nil {
		t.Fatal(err)
	}
	count := func() int {
		text, err := os.ReadFile(runs)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "run")
	}
	again, err := provenMetal(t.Context(), home, settings, silent)
	if err != nil || again[selfTestNote] != notes[selfTestNote] || again[degradedNote] != notes[degradedNote] ||
		count() != 1 {
		t.Errorf("the same server again: %v, %q, %d runs", err, again, count())
	}
	settings.ProgramSHA256 = "sha256:bb"
	if _, err := provenMetal(t.Context(), home, settings, silent); err != nil || count() != 2 {
		t.Errorf("another server: %v, %d runs", err, count())
	}
	settings.Device = "cpu"
	if notes, err := provenMetal(t.Context(), home, settings, silent); err != nil || notes != nil || count() != 2 {
		t.Errorf("on the CPU: %v, %q, %d runs", err, notes, count())
	}
}

func TestServerIsNotLaunchedOnAWrongGPU(t *testing.T) {
	home := makeHome(t)
	settings, _ := metalServer(t, home, "swiglu")
	var unfit *launch.UnfitError
	if _, err := provenMetal(t.Context(), home, settings, silent); !errors.As(err, &unfit) ||
		!strings.Contains(unfit.Why, "kernel swiglu") || !strings.Contains(unfit.Why, "--model pocket") {
		t.Errorf("%v, wanted an UnfitError that names the kernel", err)
	}
	settings.Device = serverDevice(plan.Decisions{Profile: plan.Profile{Device: "metal"},
		Model: plan.Model{Bytes: 1 << 30}})
	notes, err := provenMetal(t.Context(), home, settings, silent)
	if err != nil || !strings.Contains(notes[selfTestNote], "refused: ") ||
		!strings.Contains(notes[selfTestNote], "kernel swiglu") {
		t.Errorf("a small model: %v, %q", err, notes)
	}
	if device := serverDevice(plan.Decisions{Profile: plan.Profile{Device: "metal"},
		Model: plan.Model{Bytes: 15 << 30}}); device != "metal" {
		t.Errorf("a large model would go to %s", device)
	}
}

func silent(Event) {}
