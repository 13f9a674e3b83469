package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/engine/device"
	"slipway/engine/device/cpu"
	"slipway/engine/model"
)

func TestTooLargeSettingsNameOnesThatFit(t *testing.T) {
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
	l := &Host{opened: opened{device: d}, s: Settings{WindowTokens: 16384, Parallel: 2}}
	page := model.PageBytes(d, config, 0, model.NoDraft)
	cache := func(held, bytes, workingSet int64) error {
		return fmt.Errorf("model: %w", &device.MemoryError{What: "the cache of 7 pages", Bytes: bytes * page,
			Held: held * page, WorkingSet: workingSet * page})
	}
	for _, c := range []struct {
		name    string
		err     error
		points  int
		says    string
		setting bool // lowering a setting helps
	}{
		{"a window that is too long", cache(50, 128, 100), 0, "Lower --window to 5632, or --parallel", true},
		{"points alone do not make room", cache(50, 138, 100), 10, "Lower --window to 5632 with --cache-memory 0, " +
			"or --parallel", true},
		{"no window fits", cache(99, 128, 100), 0, "; a smaller model leaves more", true},
		{"weights", &device.MemoryError{What: "layers.3.mlp.up_proj", Bytes: 2e9, Held: 16e9, WorkingSet: 17e9,
			Weights: true}, 0,
			"the GPU may use 17.0 GB of this machine's memory, holds 16.0 GB already, and layers.3.mlp.up_proj " +
				"needs 2.00 GB more; take a smaller model", false},
	} {
		err := l.explainRoom(c.err, model.Options{ExtraPages: c.points}, config)
		var setting *SettingError
		var tooLarge *ModelError
		if errors.As(err, &setting) != c.setting || errors.As(err, &tooLarge) == c.setting ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if err := errors.New("another"); l.explainRoom(err, model.Options{}, config) != err {
		t.Error("another error is said otherwise")
	}
}
