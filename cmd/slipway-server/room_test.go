package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"slipway/engine/device/cpu"
	"slipway/engine/model"
	"slipway/metal"
)

// What is advised must work.
func TestSettingsBeyondTheGPUThatSayNoNextStep(t *testing.T) {
	args := func(cache string) []string {
		return []string{"serve", "--model", pocketDir, "--port", "0", "--device", "metal", "--window", "32768", "--parallel", "16", "--cache-memory", cache}
	}
	code, _, errOut := finish(t, fakeCommand(t, "", args("100000000000")...))
	advised := regexp.MustCompile(`Lower --cache-memory to (\d+), or --window, or --parallel, or give --kv q8`).FindStringSubmatch(errOut)
	if code != exitUsage || advised == nil || !strings.Contains(errOut, "half of --cache-memory 100000000000, for restore points") || !strings.Contains(errOut, "the GPU may use 17.2 GB") {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	begin(t, fakeCommand(t, "", args(advised[1])...))
}

func TestRoomThatIsNotSaid(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(pocketDir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := model.ParseConfig(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := cpu.New(1)
	defer d.Close()
	l := &loaded{opened: opened{device: d}}
	page := model.PageBytes(d, config, 0) // the head's among them
	cache := func(held, bytes, workingSet int64) error {
		return fmt.Errorf("model: %w", &metal.MemoryError{What: "the cache of 7 pages", Bytes: bytes * page, Held: held * page, WorkingSet: workingSet * page})
	}
	for _, c := range []struct {
		name   string
		err    error
		points int
		says   string
		code   int
	}{
		{"a window that is too long", cache(50, 128, 100), 0, "Lower --window to 5632, or --parallel", exitUsage},
		{"points alone do not make room", cache(50, 138, 100), 10, "Lower --window to 5632 with --cache-memory 0, or --parallel", exitUsage},
		{"no window fits", cache(99, 128, 100), 0, "; a smaller model leaves more", exitUsage},
		{"weights", &metal.MemoryError{What: "layers.3.mlp.up_proj", Bytes: 2e9, Held: 16e9, WorkingSet: 17e9, Weights: true}, 0,
			"the GPU may use 17.0 GB of this machine's memory, holds 16.0 GB already, and layers.3.mlp.up_proj needs 2.0 GB more; take a smaller model", exitModel},
	} {
		err := l.saidRoom(c.err, settings{window: 16384, parallel: 2}, model.Options{ExtraPages: c.points}, config)
		var refused *failure
		if !errors.As(err, &refused) || refused.code != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if err := errors.New("another"); l.saidRoom(err, settings{}, model.Options{}, config) != err {
		t.Error("another error is said otherwise")
	}
}
