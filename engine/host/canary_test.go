package host

import (
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What was said stays out of the log and of every file, whichever wire it came by, though the cache is kept on disk and
// a response in memory.
func TestWhatWasSaidIsInNoFileAndNoLog(t *testing.T) {
	dir := t.TempDir()
	k := startKept(t, func(s *Settings) { s.CacheDisk = dir + "/cache" })
	long := strings.Repeat("canary-question about the harbour. ", 40)
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"pocket","max_tokens":8,"messages":[{"role":"user","content":"Q"}]}`,
		"/v1/messages":         `{"model":"pocket","max_tokens":8,"messages":[{"role":"user","content":"Q"}]}`,
		"/v1/responses":        `{"model":"pocket","max_output_tokens":8,"input":"Q"}`,
		"/api/chat":            `{"model":"pocket","options":{"num_predict":8},"messages":[{"role":"user","content":"Q"}]}`,
	} {
		for _, body := range []string{strings.Replace(body, "Q", long, 1), strings.Replace(body, "8", `"canary"`, 1)} {
			response, err := http.Post(k.URL+path, "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			raw, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil || (response.StatusCode == http.StatusOK) != strings.Contains(body, "question") {
				t.Errorf("%s: %d, %v: %s", path, response.StatusCode, err, raw)
			}
		}
	}
	k.stop()
	files := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte("canary")) || bytes.Contains(raw, []byte("harbour")) {
			t.Errorf("%s holds what was said", path)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Fatal(files, err)
	}
	if log := k.log.text.String(); strings.Contains(log, "canary") || !strings.Contains(log, "refused") {
		t.Errorf("log: %s", log)
	}
}
