// A test double of slipway-server that speaks its contract: serve with /health and a canned streamed reply, probe.
// A file named fault in the home chooses a fault: "crash", "slow" (not ready while the file is there), or "mute" (it
// notes in the file asked that it was asked, and does not answer); while a file named hold is there, answers wait; a
// file named probe.json there is what probe says. Its cache holds one point.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// metal is set by the linker: a double for a Mac, whose GPU passes its self-test.
var metal string

const macCan = `{"schema_version":1,"version":"double","os":"any","arch":"any","device":"metal","devices":["cpu","metal"],"recommended_max_working_set":null,"max_buffer_length":0,"capabilities":{"kv_formats":["f32","f16","q8"],"kv_formats_of":{"cpu":["f32"],"metal":["f16","q8"]},"operands":["f16","bf16"],"prefill_policies":["exact"],"drafts":["none","mtp","dflash2"],"devices":["cpu","metal"]}}`

func main() {
	if metal != "" && len(os.Args) > 1 && os.Args[1] == "probe" {
		fmt.Println(macCan)
		return
	}
	if metal != "" && len(os.Args) > 1 && os.Args[1] == "selftest" {
		fmt.Println(`{"schema_version":1,"passed":true,"results":[{}]}`)
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "probe" {
		if said, err := os.ReadFile(filepath.Join(filepath.Dir(os.Args[0]), "..", "..", "probe.json")); err == nil {
			os.Stdout.Write(said)
			return
		}
		fmt.Println(`{"schema_version":1,"version":"double","os":"any","arch":"any","device":"cpu","devices":["cpu"],"recommended_max_working_set":null,"max_buffer_length":0,"capabilities":{"kv_formats":["f32"],"kv_formats_of":{"cpu":["f32"]},"prefill_policies":["exact"],"drafts":["none","mtp","dflash2"],"devices":["cpu"]}}`)
		return
	}
	if len(os.Args) == 5 && os.Args[1] == "cache" {
		cacheVerb(os.Args[2], os.Args[4])
		return
	}
	if len(os.Args) < 2 || os.Args[1] != "serve" {
		fmt.Fprintln(os.Stderr, "usage: slipway-server serve|probe")
		os.Exit(2)
	}
	f := flag.NewFlagSet("serve", flag.ExitOnError)
	model := f.String("model", "", "")
	f.String("device", "auto", "")
	f.String("kv", "", "")
	host := f.String("host", "127.0.0.1", "")
	port := f.Int("port", 8008, "")
	f.Int("window", 0, "")
	f.Int("parallel", 2, "")
	launchID := f.String("launch-id", "", "")
	modelID := f.String("model-id", "", "")
	f.String("revision", "", "")
	f.String("draft", "", "")
	f.String("draft-dir", "", "")
	f.Int("monitor-port", 0, "")
	f.String("launch-file", "", "")
	f.String("profile-name", "", "")
	f.Int64("cache-memory", 0, "")
	cache := f.String("cache-disk", "", "")
	f.Int64("cache-disk-bytes", 0, "")
	f.Int64("cache-disk-daily-bytes", 0, "")
	normalize := f.String("normalize-file", "", "")
	f.Parse(os.Args[2:])
	faultFile := filepath.Join(*model, "..", "..", "..", "fault")
	fault, _ := os.ReadFile(faultFile)
	if string(fault) == "crash\n" {
		fmt.Println("loading", *model)
		fmt.Fprintln(os.Stderr, "the double was told to crash\x1b[31m")
		os.Exit(1)
	}
	if _, err := os.Stat(filepath.Join(*model, "config.json")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if *cache != "" {
		keep(*cache)
	}
	if *normalize != "" {
		if _, err := os.ReadFile(*normalize); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	started := time.Now()
	slow := string(fault) == "slow\n"
	ready := func() bool {
		_, err := os.Stat(faultFile)
		return !slow || err != nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{"product": "slipway", "version": "double", "pid": os.Getpid(),
			"started":   started.Format(time.RFC3339),
			"launch_id": *launchID, "model": *modelID, "ready": ready(), "busy": false, "active": 0, "queued": 0,
			"background": false, "draining": false})
	})
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{"data": []any{map[string]any{"id": *modelID}}})
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		if fault, _ := os.ReadFile(faultFile); string(fault) == "mute\n" {
			os.WriteFile(filepath.Join(filepath.Dir(faultFile), "asked"), nil, 0o600)
			io.Copy(io.Discard, r.Body) // so that the end of the client is seen
			<-r.Context().Done()
			return
		}
		for err := error(nil); err == nil && r.Context().Err() == nil; time.Sleep(20 * time.Millisecond) {
			_, err = os.Stat(filepath.Join(filepath.Dir(faultFile), "hold"))
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, piece := range []string{"I am ", "a test ", "double."} {
			data, _ := json.Marshal(
				map[string]any{"choices": []any{map[string]any{"delta": map[string]any{"content": piece}}}})
			fmt.Fprintf(w, "data: %s\n\n", data)
		}
		fmt.Fprintf(w, "data: %s\n\n", `{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":11,"total_tokens":31,`+
			`"slipway":{"computed_tokens":20,"decode_ms":4000}}}`)
		fmt.Fprint(w, "data: [DONE]\n\n")
	})
	server := &http.Server{Addr: fmt.Sprintf("%s:%d", *host, *port), Handler: mux}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() { <-stop; server.Shutdown(context.Background()) }()
	fmt.Println("listening on", server.Addr)
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const tag = "CACHEDIR.TAG"

// keep makes a cache folder as the server does, with one point.
func keep(dir string) {
	for _, sub := range []string{"points", "pages"} {
		os.MkdirAll(filepath.Join(dir, sub), 0o700)
	}
	os.WriteFile(filepath.Join(dir, tag), []byte("a cache\n"), 0o600)
	os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600)
	os.WriteFile(filepath.Join(dir, "points", strings.Repeat("ab", 32)), []byte("a point"), 0o600)
}

func cacheVerb(verb, dir string) {
	if _, err := os.Stat(filepath.Join(dir, tag)); err != nil {
		fmt.Fprintln(os.Stderr, "this is no cache folder of slipway")
		os.Exit(2)
	}
	if verb == "clear" {
		os.RemoveAll(filepath.Join(dir, "points"))
		return
	}
	points, _ := os.ReadDir(filepath.Join(dir, "points"))
	json.NewEncoder(os.Stdout).Encode(map[string]any{"points": len(points), "point_bytes": 7 * len(points), "pages": 0,
		"page_bytes": 0, "reply_bytes": 0,
		"oldest": time.Now(), "newest": time.Now(), "in_use": false})
}
