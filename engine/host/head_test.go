package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/engine/sample"
	"slipway/engine/serve"
	"slipway/mtphead"
	"slipway/safetensors"
)

// withoutHead is Pocket in a folder without its MTP head, and the head in a folder of its own.
func withoutHead(t *testing.T) (model, head string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(pocketDir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := safetensors.ReadHeader("model.safetensors", data, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var trunk, mtp []safetensors.Tensor
	for _, e := range entries {
		tensor := safetensors.Tensor{Name: e.Name, DType: e.DType, Shape: e.Shape, Data: data[e.Begin:e.End]}
		if strings.HasPrefix(e.Name, "mtp.") {
			mtp = append(mtp, tensor)
		} else {
			trunk = append(trunk, tensor)
		}
	}
	model, head = t.TempDir(), t.TempDir()
	for _, name := range []string{"config.json", "tokenizer.json", "generation_config.json", "chat_template.jinja"} {
		from, err := filepath.Abs(filepath.Join(pocketDir, name))
		if err == nil {
			err = os.Symlink(from, filepath.Join(model, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, tensors := range map[string][]safetensors.Tensor{filepath.Join(model, "model.safetensors"): trunk,
		filepath.Join(head, mtphead.FileName): mtp} {
		if err := os.WriteFile(path, safetensors.Marshal(tensors), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return model, head
}

// A head in a folder of its own drafts as the checkpoint's own does; one that does not fit is refused with a sentence.
func TestHeadInAFolderOfItsOwnDrafts(t *testing.T) {
	model, head := withoutHead(t)
	open := func(change func(*Settings)) (*Host, error) {
		s := pocketOn(nil)
		s.Device, s.WindowTokens, s.CacheMemoryBytes, s.Draft, s.DraftTokens = "cpu", 1024, 0, "mtp", 3
		change(&s)
		return Open(s)
	}
	var replies []answered
	for _, change := range []func(*Settings){
		func(*Settings) {},
		func(s *Settings) { s.ModelDir, s.DraftDir = model, head },
	} {
		h, err := open(change)
		if err != nil {
			t.Fatal(err)
		}
		d := &draftedHost{t, h}
		stop := d.run()
		p := sample.Neutral()
		p.Temperature = 0
		replies = append(replies, d.ask(serve.Request{Prompt: textsOf(t)[0], MaxTokens: 40, Sampling: p,
			TopLogprobs: -1, DraftTokens: 3}, 0))
		stop()
	}
	own, apart := replies[0].usage.Drafts, replies[1].usage.Drafts
	if replies[0].Text != replies[1].Text || own.Accepted() == 0 || own.Accepted() != apart.Accepted() ||
		own.Drafted() != apart.Drafted() {
		t.Errorf("%d of %d tokens accepted, with the own head %d of %d", apart.Accepted(), apart.Drafted(),
			own.Accepted(), own.Drafted())
	}

	other := t.TempDir()
	wide := []safetensors.Tensor{{Name: "mtp.fc.weight", DType: "BF16", Shape: []int64{2, 4}, Data: make([]byte, 16)}}
	if err := os.WriteFile(filepath.Join(other, mtphead.FileName), safetensors.Marshal(wide), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, dir, says string }{
		{"no head at all", "", "--draft mtp"},
		{"an empty folder", t.TempDir(), "leave --draft out"},
		{"a head of another model", other, "leave --draft out"},
	} {
		h, err := open(func(s *Settings) { s.ModelDir, s.DraftDir = model, c.dir })
		if err == nil {
			h.Close(0)
		}
		if !errors.As(err, new(*SettingError)) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
