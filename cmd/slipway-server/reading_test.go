package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unpadded is Pocket as MLX's own writer would have it: nothing pads the header, so that no tensor lies on 16 bytes.
func unpadded(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), filepath.Base(pocketDir))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(pocketDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(pocketDir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f.Name(), ".safetensors") {
			header := binary.LittleEndian.Uint64(text) // its length
			longer := binary.LittleEndian.AppendUint64(nil, header+1)
			longer = append(append(longer, text[8:8+header]...), ' ')
			text = append(longer, text[8+header:]...)
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name()), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestUnpaddedWeightsAnswerAlike(t *testing.T) {
	said := map[string]string{}
	for name, dir := range map[string]string{"padded": pocketDir, "unpadded": unpadded(t)} {
		p := begin(t, fakeCommand(t, "", "serve", "--model", dir, "--port", "0", "--device", "metal", "--window",
			"1024"))
		response := p.post(t, strings.Replace(hello, `"stream":true`, `"stream":true,"max_tokens":6`, 1))
		text, _, whole := streamed(t, response.Body)
		if !whole || text == "" {
			t.Fatalf("%s: status %d, %q: %s", name, response.StatusCode, text, p.said())
		}
		said[name] = text
		_, rest, _ := strings.Cut(p.said(), "weights on the GPU")
		var inPlace, copied int64
		if _, err := fmt.Sscanf(strings.Trim(rest, `" `), "in_place_bytes=%d copied_bytes=%d", &inPlace,
			&copied); err != nil {
			t.Fatalf("%s: %v: %s", name, err, rest)
		}
		if whole := inPlace + copied; whole == 0 || name == "padded" && copied != 0 || name == "unpadded" &&
			inPlace != 0 {
			t.Errorf("%s: %d bytes in place, %d copied", name, inPlace, copied)
		}
	}
	if said["padded"] != said["unpadded"] {
		t.Errorf("%q", said)
	}
}
