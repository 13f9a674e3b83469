package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestSettingThatCannotBeHonouredIsRefused(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good", "0123456789abcdef\n", 0o600)
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	serve := func(args ...string) []string {
		return append([]string{"serve", "--model", pocketDir, "--port", "0"}, args...)
	}
	tests := []struct {
		name string
		args []string
		says string
	}{
		{"no command", nil, "a command is missing"},
		{"unknown command", []string{"surf"}, `no command "surf"`},
		{"unknown flag", serve("--turbo"), "turbo"},
		{"flag after an argument", []string{"serve", "x", "--port", "0"}, "--port comes after an argument"},
		{"argument", serve("x"), `no argument "x"`},
		{"probe with an argument", []string{"probe", "x"}, `no argument "x"`},
		{"no model", []string{"serve"}, "--model is missing"},
		{"no such model", []string{"serve", "--model", filepath.Join(dir, "nowhere")}, "no such folder"},
		{"metal where there is none", serve("--device", "metal"), "Metal is part of macOS"},
		{"unknown device", serve("--device", "tpu"), "auto, cpu and metal"},
		{"q8 on the CPU", serve("--device", "cpu", "--kv", "q8"), "--kv q8: the CPU keeps keys and values in f32 " +
			"and would save nothing"},
		{"f16 by itself on the CPU", serve("--kv", "f16"), "leave --kv out, or answer on a GPU with --device metal"},
		{"unknown format", serve("--kv", "q4"), "--kv q4: there are f16, q8 on metal and f32 on cpu"},
		{"operands on the CPU", serve("--device", "cpu", "--operands", "bf16"), "--operands bf16: the CPU " +
			"multiplies in f32"},
		{"unknown operands", serve("--operands", "f8"), "there are auto, f16 and bf16"},
		{"unknown draft", serve("--draft", "eagle"), "--draft eagle: there are none, mtp, dflash2"},
		{"draft too deep", serve("--draft", "mtp", "--draft-tokens", "5"), "--draft-tokens 5: mtp proposes " +
			"1 to 4 tokens"},
		{"draft of no tokens", serve("--draft", "mtp", "--draft-tokens", "0"), "--draft-tokens 0: it must " +
			"be in [1, 7]"},
		{"draft tokens without a draft", serve("--draft-tokens", "2"), "--draft-tokens 2: nothing drafts"},
		{"port too high", serve("--port", "70000"), "[0, 65535]"},
		{"port is a word", serve("--port", "http"), "port"},
		{"window beyond the model's", serve("--window", "40000"), "the model's own window is 32768"},
		{"window too small", serve("--window", "10"), "--window 10"},
		{"parallel zero", serve("--parallel", "0"), "--parallel 0"},
		{"queue negative", serve("--queue", "-1"), "--queue -1"},
		{"host is a name", serve("--host", "example.org"), "must be an IP address"},
		{"public host", serve("--host", "8.8.8.8", "--api-key-file", good), "public address"},
		{"all interfaces without a key", serve("--host", "0.0.0.0"), "needs a key"},
		{"IPv6 all interfaces without a key", serve("--host", "::"), "needs a key"},
		{"LAN without a key", serve("--host", "192.168.1.5"), "needs a key"},
		{"key file of others", serve("--api-key-file", file("open", "0123456789abcdef", 0o644)), "mode 0644"},
		{"key file of the group", serve("--api-key-file", file("group", "0123456789abcdef", 0o640)), "chmod 600"},
		{"key too short", serve("--api-key-file", file("short", "secret\n", 0o600)), "at least 16"},
		{"key of two words", serve("--api-key-file", file("words", "0123456789abcdef 0123456789abcdef", 0o600)),
			"visible ASCII"},
		{"key file empty", serve("--api-key-file", file("empty", "", 0o600)), "at least 16"},
		{"key file missing", serve("--api-key-file", filepath.Join(dir, "none")), "no such file"},
		{"key file is a folder", serve("--api-key-file", dir), "is no regular file"},
		{"key file is a pipe", serve("--api-key-file", pipe), "is no regular file"},
		{"key file is a device", serve("--api-key-file", "/dev/zero"), "is no regular file"},
		{"key file unnamed", serve("--api-key-file", ""), "no such file"},
		{"launch id", serve("--launch-id", "a b"), "--launch-id"},
		{"revision is a branch", serve("--revision", "main"), "40 lower-case hex"},
		{"model id", serve("--model-id", "a b"), "--model-id"},
		{"allowed host with a port", serve("--allow-host", "mac.local:80"), "without a port"},
		{"any host", serve("--allow-host", "*"), "without a port"},
		{"any origin", serve("--allow-origin", "*", "--api-key-file", good), "there are no patterns"},
		{"pattern of origins", serve("--allow-origin", "http://*", "--api-key-file", good), "there are no patterns"},
		{"origin null", serve("--allow-origin", "null", "--api-key-file", good), "names nobody"},
		{"origin with a path", serve("--allow-origin", "http://localhost:3000/", "--api-key-file", good),
			"without a path"},
		{"origin without a key", serve("--allow-origin", "app://"), "needs a key: give --origin-key-file"},
		{"key of origins without one", serve("--origin-key-file", good), "--allow-origin, which is missing"},
		{"key of origins of the group", serve("--allow-origin", "app://", "--origin-key-file",
			file("group2", "0123456789abcdef", 0o640)), "--origin-key-file"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if runtime.GOOS == "darwin" && strings.HasPrefix(test.name, "metal") {
				t.Skip("this machine may have Metal")
			}
			code, out, errOut := finished(t, test.args...)
			last := errOut[strings.LastIndex(strings.TrimSpace(errOut), "\n")+1:]
			if code != exitUsage || out != "" || !strings.HasPrefix(last, "slipway-server: ") ||
				!strings.Contains(last, test.says) {
				t.Errorf("exit %d, stdout %q, stderr %q", code, out, errOut)
			}
			if strings.Contains(errOut, "0123456789abcdef") {
				t.Errorf("the key is printed: %s", errOut)
			}
		})
	}
}

func TestTakenPortEndsWithItsOwnCode(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	code, _, errOut := finished(t, "serve", "--model", pocketDir, "--port", port)
	if code != exitAddress || !strings.Contains(errOut, "address already in use") {
		t.Errorf("exit %d: %s", code, errOut)
	}
}

func TestModelThatCannotBeLoadedIsNamedWithTheFault(t *testing.T) {
	files := []string{"config.json", "tokenizer.json", "generation_config.json", "chat_template.jinja",
		"model.safetensors"}
	tests := []struct {
		name, file string
		damage     func([]byte) []byte // nil result removes the file
		says       string
	}{
		{"no config", "config.json", func([]byte) []byte { return nil }, "config.json"},
		{"config of another family", "config.json", func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte("qwen3_5"), []byte("llama"))
		}, "model_type"},
		{"no tokenizer", "tokenizer.json", func([]byte) []byte { return nil }, "tokenizer.json"},
		{"tokenizer cut", "tokenizer.json", func(b []byte) []byte { return b[:1000] }, "tokenizer.json"},
		{"weights cut", "model.safetensors", func(b []byte) []byte { return b[:len(b)-1000] }, "model.safetensors"},
		{"end token beyond the vocabulary", "config.json", func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"eos_token_id": 4088`), []byte(`"eos_token_id": 5000`), 1)
		}, "eos_token_id: found 5000"},
		{"end token that the tokenizer has not", "tokenizer.json", func(b []byte) []byte {
			var file map[string]any
			if err := json.Unmarshal(b, &file); err != nil {
				t.Fatal(err)
			}
			added := file["added_tokens"].([]any)
			file["added_tokens"] = slices.DeleteFunc(added, func(token any) bool {
				return token.(map[string]any)["id"].(float64) >= 4088
			})
			out, err := json.Marshal(file)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}, "eos_token_id: found 4088"},
		{"template without text", "chat_template.jinja", func([]byte) []byte { return []byte("\n") }, "empty template"},
		{"sampling defaults out of range", "generation_config.json", func(b []byte) []byte {
			return bytes.Replace(b, []byte("0.7"), []byte("7.0"), 1)
		}, "temperature"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "broken")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, name := range files {
				content, err := os.ReadFile(filepath.Join(pocketDir, name))
				if err != nil {
					t.Fatal(err)
				}
				if name == test.file {
					content = test.damage(content)
				}
				if content == nil {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			code, _, errOut := finished(t, "serve", "--model", dir, "--port", "0")
			if code != exitModel || !strings.Contains(errOut, "cannot be loaded") ||
				!strings.Contains(errOut, test.says) || strings.Contains(errOut, "goroutine") {
				t.Errorf("exit %d: %s", code, errOut)
			}
		})
	}
}

func TestDefaultWindowIsBoundedByTheModels(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"config.json", "tokenizer.json", "generation_config.json", "chat_template.jinja",
		"model.safetensors"} {
		content, err := os.ReadFile(filepath.Join(pocketDir, name))
		if err != nil {
			t.Fatal(err)
		}
		content = bytes.Replace(content, []byte(`"max_position_embeddings": 32768`),
			[]byte(`"max_position_embeddings": 4096`), 1)
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := serving(t, "--model", dir, "--model-id", "small")
	response, err := http.Get(p.url + "/v1/models/small")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); !strings.Contains(string(body), `"context_window":4096`) {
		t.Errorf("%s", body)
	}
}

func TestServeHonoursWhatProbeOffers(t *testing.T) {
	code, out, errOut := finished(t, "probe")
	var p map[string]any
	d := json.NewDecoder(strings.NewReader(out))
	if err := d.Decode(&p); err != nil || code != 0 || errOut != "" {
		t.Fatalf("exit %d, %v, stderr %q", code, err, errOut)
	}
	if d.More() || p["schema_version"] != 1.0 {
		t.Errorf("%s", out)
	}
	for _, member := range []string{"version", "os", "arch", "device", "devices", "recommended_max_working_set",
		"max_buffer_length", "capabilities"} {
		if _, there := p[member]; !there {
			t.Errorf("%s is missing", member)
		}
	}
	formats := p["capabilities"].(map[string]any)["kv_formats_of"].(map[string]any)
	for _, device := range p["devices"].([]any) {
		serving(t, "--device", device.(string))
		for _, format := range formats[device.(string)].([]any) {
			serving(t, "--device", device.(string), "--kv", format.(string))
		}
	}
}

func TestUnknownInstructionSetIsRefused(t *testing.T) {
	c := command("serve", "--model", pocketDir, "--port", "0")
	c.Env = append(c.Env, "SLIPWAY_CPU_ISA=avx99")
	code, _, errOut := finish(t, c)
	if code != exitUsage || !strings.Contains(
		errOut, `SLIPWAY_CPU_ISA: kernels: instruction set "avx99" is not known`) {
		t.Errorf("%d\n%s", code, errOut)
	}
}
