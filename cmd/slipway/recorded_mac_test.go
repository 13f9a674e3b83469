package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"slipway/installer"
	"slipway/installer/answers"
	"slipway/installer/apply"
	"slipway/installer/machine"
	"slipway/manifests"
	testhub "slipway/test/hub"
)

// anotherMachine makes this program see a recorded machine (TEST_MACHINE, a recording) and models of a test hub
// (TEST_REVISIONS, "id=revision" each, and TEST_DOWNLOAD_BYTES) instead of its own.
//
// TEST_RECORDED_SOURCE is the folder that it was compiled in: go test -trimpath does not note it.
//
// TEST_PORTS are the ports of a request without ports: no test holds one that a server of the person may have.
func anotherMachine(at *installer.Environment) {
	fmt.Sscan(os.Getenv("TEST_PORTS"), &at.Port, &at.MonitorPort)
	at.RecordedSource = cmp.Or(at.RecordedSource, os.Getenv("TEST_RECORDED_SOURCE"))
	if file := os.Getenv("TEST_MACHINE"); file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		recorded, err := machine.ParseRecording(data)
		if err != nil {
			panic(err)
		}
		at.Sources = recorded
	}
	bytes, _ := strconv.ParseInt(os.Getenv("TEST_DOWNLOAD_BYTES"), 10, 64)
	if revisions := strings.Fields(os.Getenv("TEST_REVISIONS")); len(revisions) > 0 {
		at.Manifests = manifests.All()
		for i, m := range at.Manifests {
			for _, pair := range revisions {
				if id, revision, _ := strings.Cut(pair, "="); id == m.ID {
					at.Manifests[i].Revision = manifests.Revision(revision)
					at.Manifests[i].DownloadBytes = cmp.Or(bytes, m.DownloadBytes)
				}
			}
		}
	}
}

// threeModels is a hub with all models of the bundled manifests, small in bytes and with revisions of their own.
func threeModels(t *testing.T) (hub *testhub.Server, revisions string) {
	t.Helper()
	hub, err := testhub.Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	for i, m := range manifests.All() {
		if m.Embedded {
			continue
		}
		repo, err := hub.Add(m.Repo, testhub.File{Path: "config.json", Content: testhub.Bytes([]byte("{}"))},
			testhub.File{Path: "model.safetensors", Content: testhub.Pattern(uint64(i+1), 200_000), LFS: true},
			testhub.File{Path: "README.md", Content: testhub.Bytes([]byte("not wanted"))})
		if err != nil {
			t.Fatal(err)
		}
		revisions += fmt.Sprintf("%s=%s ", m.ID, repo.Revision)
	}
	return hub, revisions
}

// onMac is a rig that sees a recorded Mac, with a double of the server for it, and the environment for a hub.
func onMac(t *testing.T, name, revisions string) (*rig, func(hub string) []string) {
	t.Helper()
	r := newRig(t, "-ldflags", "-s -X main.metal=yes")
	recording, err := filepath.Abs(filepath.Join("../../installer/machine/testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return r, func(hub string) []string {
		return []string{"TEST_MACHINE=" + recording, "TEST_REVISIONS=" + revisions, "HF_ENDPOINT=" + hub}
	}
}

// recordedMacs are the Macs whose facts are recorded, each with the model that fits.
var recordedMacs = map[string]string{"m1-16": "qwen3.5-9b-4bit", "m4-24": "qwen3.5-9b-4bit",
	"m2-pro-32": "qwen3.5-9b-4bit", "m4-max-36": "qwen3.8-27b-mtplx-bare-speed",
	"m3-ultra-96": "qwen3.8-27b-mtplx-bare-speed", "m5-max-128": "qwen3.8-27b-mtplx-bare-speed"}

// deadHub is an address at which nobody listens.
const deadHub = "http://127.0.0.1:1"

// For each recorded Mac, from a fresh home: a web page in the place of the hub and wrong bytes change nothing that
// stays; a mirror with the right bytes continues; one command ends with the real model; the same command again changes
// nothing and asks nobody; doctor is content; uninstall leaves nothing.
func TestOneCommandSetsUpTheModelThatFitsEachRecordedMac(t *testing.T) {
	right, revisions := threeModels(t)
	wrong, others := threeModels(t)
	if others != revisions {
		t.Fatalf("the hubs differ: %s and %s", revisions, others)
	}
	wrong.Script(testhub.Fault{Place: testhub.CDN, Kind: testhub.WrongBytes, After: 1000, Times: -1})
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<html>Sign in to the hotel's network</html>")
	}))
	t.Cleanup(page.Close)
	for name, want := range recordedMacs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, at := onMac(t, name, revisions)
			code, out, errOut := r.run(at(page.URL), "setup", "--yes")
			r.hubInTheWay(code, out+errOut, "answered with a web page: sign in to the network or set HTTPS_PROXY")

			code, out, errOut = r.run(at(wrong.URL), "setup", "--yes")
			installed, _ := filepath.Glob(filepath.Join(r.home, "models/*/*/model.safetensors"))
			if code != exitDamage || len(installed) > 0 || r.servers() > 0 {
				t.Fatalf("wrong bytes: %d, %v installed\n%s%s", code, installed, out, errOut)
			}
			code, out, errOut = r.run(append(at(wrong.URL), "SLIPWAY_MIRRORS="+right.URL), "setup", "--yes")
			if code != 0 || !strings.Contains(out, "It says: I am a test double.") ||
				!strings.Contains(errOut, "Continuing") {
				t.Fatalf("with a mirror: %d\n%s%s", code, out, errOut)
			}
			r.leavesNothing()

			code, out, errOut = r.run(at(right.URL), "setup", "--yes")
			if code != 0 || !strings.Contains(out, "It says: I am a test double.") {
				t.Fatalf("%d\n%s%s", code, out, errOut)
			}
			var status struct {
				Data struct{ Model string }
				Meta struct{ Toy bool }
			}
			code, out, _ = r.run(at(deadHub), "status", "--json")
			if err := json.Unmarshal([]byte(out), &status); err != nil || code != 0 || status.Data.Model != want ||
				status.Meta.Toy {
				t.Fatalf("%d, %v, want %s\n%s\n%s", code, err, want, out, errOut)
			}
			before, err := maskedTree(r.home)
			if err != nil {
				t.Fatal(err)
			}
			code, out, errOut = r.run(at(deadHub), "setup", "--yes")
			after, err := maskedTree(r.home)
			if code != 0 || err != nil || !strings.Contains(errOut, "nothing was changed") || before != after {
				t.Fatalf("again: %d %v\n%s%s\nbefore\n%s\nafter\n%s", code, err, out, errOut, before, after)
			}
			if _, out, _ := r.run(at(deadHub), "plan"); !strings.Contains(out, "The model that is set up.") {
				t.Fatalf("what was proposed is told as what was asked for:\n%s", out)
			}
			if code, out, errOut := r.run(at(deadHub), "doctor"); code != 0 {
				t.Fatalf("doctor: %d\n%s%s", code, out, errOut)
			}
			r.leavesNothing()
		})
	}
}

// leavesNothing uninstalls: the home, its server and everything else that slipway made are gone.
func (r *rig) leavesNothing() {
	r.t.Helper()
	if code, _, errOut := r.run(nil, "uninstall", "--yes"); code != 0 {
		r.t.Fatalf("uninstall: %d\n%s", code, errOut)
	}
	entries, err := os.ReadDir(r.dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "bin" || r.servers() > 0 {
		left, _ := maskedTree(r.dir)
		r.t.Fatalf("left, and %d servers: %v\n%s", r.servers(), err, left)
	}
}

// hubInTheWay holds what a set-up says where the hub cannot be had: the host, the toy by name, never a hash on the
// hub's word; and nothing was made.
func (r *rig) hubInTheWay(code int, text, says string) {
	r.t.Helper()
	if code != exitNetwork || !strings.Contains(text, says) || !strings.Contains(text, "--model pocket") ||
		strings.Contains(text, "--accept-told") {
		r.t.Errorf("%d\n%s", code, text)
	}
	if _, err := os.Lstat(r.home); err == nil {
		r.t.Error("a home was made")
	}
}

// Without a hub the toy is offered on every Mac and never set up in silence; nothing is changed.
func TestHubThatIsDownChangesNothingAndOffersTheToyByName(t *testing.T) {
	t.Parallel() // it waits, most of its time
	_, revisions := threeModels(t)
	type run struct {
		rig  *rig
		cmd  *exec.Cmd
		text *watched
	}
	var runs []run // at once: each tries again for some seconds
	for name := range recordedMacs {
		r, at := onMac(t, name, revisions)
		text := &watched{}
		cmd := r.command(at(deadHub), "setup", "--yes")
		cmd.Stdout, cmd.Stderr = text, text
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run{r, cmd, text})
	}
	for _, run := range runs {
		run.cmd.Wait()
		run.rig.hubInTheWay(run.cmd.ProcessState.ExitCode(), run.text.text(), "127.0.0.1:1")
	}
	r, at := onMac(t, "m4-max-36", revisions)
	if code, _, errOut := r.run(at(deadHub), r.setupArgs("--yes", "--model", "pocket")...); code != 0 {
		t.Errorf("the toy by name: %d\n%s", code, errOut)
	}
}

// The digest of a request is the same without a network, through a mirror, and after the action that fetches the list.
func TestRequestHasOneDigestWhateverIsKnownOfTheFileList(t *testing.T) {
	t.Parallel()
	hub, revisions := threeModels(t)
	r, at := onMac(t, "m5-max-128", revisions)
	digest := func(env []string) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "p.json")
		code, out, errOut := r.run(env, "plan", "--json", "--out", file, "--port", fmt.Sprint(r.port), "--monitor-port",
			fmt.Sprint(r.monitor))
		var p struct{ Data struct{ Digest string } }
		if err := json.Unmarshal([]byte(out), &p); err != nil || p.Data.Digest == "" {
			t.Fatalf("%d %v\n%s%s", code, err, out, errOut)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return p.Data.Digest + string(data)
	}
	first := digest(append(at(deadHub), "HF_HUB_OFFLINE=1"))
	if through := digest(at(hub.URL)); through != first {
		t.Errorf("through a mirror it is another plan:\n%s\n%s", first, through)
	}
	for _, verb := range []string{"setup --dry-run", "doctor", "models list", "status"} {
		r.run(at(hub.URL), strings.Fields(verb)...)
	}
	if asked := hub.Log(); len(asked) > 0 {
		t.Fatalf("planning asked the hub: %v", asked)
	}
	// A run that is killed when the list is there, before the home's own action.
	killed := append(at(hub.URL), apply.KillVariable+"=3:after")
	if code, _, errOut := r.run(killed, r.setupArgs("--yes")...); code != -1 || !asked(hub, testhub.Git) {
		t.Fatalf("not killed: %d\n%s", code, errOut)
	}
	for where, env := range map[string][]string{"offline": append(at(deadHub), "HF_HUB_OFFLINE=1"),
		"online": at(hub.URL)} {
		if behind := digest(env); behind != first {
			t.Errorf("killed behind the list, %s, it is another plan:\n%s\n%s", where, first, behind)
		}
	}
	// A run that stops after the list: the files cannot be had.
	hub.Script(testhub.Fault{Place: testhub.Resolve, Kind: testhub.Status, Status: 403, Times: -1})
	if code, _, errOut := r.run(at(hub.URL), r.setupArgs("--yes")...); code == 0 {
		t.Fatalf("nothing stopped it\n%s", errOut)
	}
	if behind := digest(at(hub.URL)); behind != first {
		t.Errorf("after the list it is another plan:\n%s\n%s", first, behind)
	}
	// The plan that was made without a network is the one that is carried out with it.
	hub.Calm()
	file := filepath.Join(t.TempDir(), "p.json")
	_, text, _ := strings.Cut(first, "{")
	if err := os.WriteFile(file, []byte("{"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errOut := r.run(at(hub.URL), "apply", "--plan", file, "--digest", strings.TrimSuffix(first, "{"+text))
	if code != 0 || !strings.Contains(errOut, "Continuing") {
		t.Fatalf("%d\n%s", code, errOut)
	}
}

// A person and an assistant are told that the model is the toy: in the plan, in status, in every document, at the end.
func TestToyIsNamedInPlanStatusDocumentsAndAtTheEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, out, _ := r.run(nil, r.setupArgs("--dry-run")...)
	if !strings.Contains(out, toyWords) {
		t.Errorf("the plan does not say it:\n%s", out)
	}
	code, out, errOut := r.run(nil, r.setupArgs("--yes")...)
	if code != 0 || !strings.Contains(out, toyWords) || !strings.Contains(errOut, toyWords) {
		t.Errorf("the end or the plan does not say it: %d\n%s%s", code, out, errOut)
	}
	if n := strings.Count(out+errOut, "chat model"); n != 2 || strings.Count(out, "Note: ") != 1 {
		t.Errorf("the toy is named %d times:\n%s%s", n, out, errOut)
	}
	code, out, errOut = r.run(nil, r.setupArgs("--yes")...)
	if code != 0 || strings.Count(out+errOut, toyWords) != 1 || strings.Contains(out, "Note: ") {
		t.Errorf("the second set-up repeats what the first said: %d\n%s%s", code, out, errOut)
	}
	if _, out, _ := r.run(nil, "status"); !strings.Contains(out, toyWords) {
		t.Errorf("status does not say it:\n%s", out)
	}
	for _, args := range [][]string{{"status"}, {"doctor"}, {"plan"}, {"setup"}, {"models", "list"}, {"neighbors"},
		{"verify"}} {
		_, out, _ := r.run(nil, append(args, "--json")...)
		if !strings.Contains(out, `"toy": true`) {
			t.Errorf("%v does not say it:\n%s", args, out)
		}
	}
}

// --max-download bounds what is fetched: by what the manifest says until the file list is known.
func TestYesFetchesNoMoreThanMaxDownload(t *testing.T) {
	t.Parallel()
	hub, revisions := threeModels(t)
	r, at := onMac(t, "m4-max-36", revisions)
	code, _, errOut := r.run(at(hub.URL), r.setupArgs("--yes", "--no-launch", "--max-download", "12GB")...)
	size := "a download of 16.0 GB, and --max-download allows 12.0 GB"
	if code != exitConsent || !strings.Contains(errOut, size) || strings.Contains(errOut, "GiB)") {
		t.Errorf("%d\n%s", code, errOut)
	}
	// A dry run says the same, and the command that it names goes past that.
	code, out, errOut := r.run(at(hub.URL), r.setupArgs("--dry-run", "--no-launch", "--max-download", "12GB",
		"--json")...)
	var e answers.Envelope
	if err := json.Unmarshal([]byte(out), &e); err != nil || code != exitConsent || e.Error == nil ||
		!strings.Contains(e.Error.Message, size) || !slices.Contains(e.Error.Next, "16GB") ||
		!strings.Contains(e.Error.Message, "--model qwen3.5-9b-4bit") {
		t.Fatalf("%d %v\n%s%s", code, err, out, errOut)
	}
	if code, out, errOut := r.run(at(hub.URL), append(e.Error.Next[1:], "--dry-run")...); code != exitChanges {
		t.Errorf("%v: %d\n%s%s", e.Error.Next, code, out, errOut)
	}
	if asked := hub.Log(); len(asked) > 0 {
		t.Errorf("the hub was asked: %v", asked)
	}
	if code, _, errOut := r.run(at(hub.URL), r.setupArgs("--yes", "--no-launch", "--max-download",
		"18GB")...); code != 0 {
		t.Errorf("%d\n%s", code, errOut)
	}
}

// A revision with more bytes than the manifest's ceiling is refused before the first byte of it.
func TestMoreBytesThanTheCeilingAreRefusedBeforeTheFirst(t *testing.T) {
	hub, err := testhub.Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	m, _ := manifests.ByID("qwen3.5-4b-4bit")
	repo, err := hub.Add(m.Repo, testhub.File{Path: "config.json", Content: testhub.Bytes([]byte("{}"))},
		testhub.File{Path: "small.safetensors", Content: testhub.Pattern(1, 1000), LFS: true},
		testhub.File{Path: "model.safetensors", Content: testhub.Pattern(2, 110_000), LFS: true})
	if err != nil {
		t.Fatal(err)
	}
	r, at := onMac(t, "m1-16", m.ID+"="+string(repo.Revision))
	env := append(at(hub.URL), "TEST_DOWNLOAD_BYTES=100000")
	code, _, errOut := r.run(env, r.setupArgs("--yes", "--model", m.ID)...)
	if code != exitStale || !strings.Contains(errOut, "its manifest allows") {
		t.Errorf("%d\n%s", code, errOut)
	}
	for _, seen := range hub.Log() {
		if seen.Place == testhub.CDN || seen.Place == testhub.Resolve {
			t.Errorf("a byte was asked for: %+v", seen)
		}
	}
	if _, err := os.Lstat(r.home); err == nil {
		t.Error("a home was made")
	}
}

// Hashes that nothing proves are not covered by --yes, and a mirror's word is never taken: nothing is made, no byte of
// the model is asked for.
func TestHashesThatOnlyAMirrorVouchesForAreNotTaken(t *testing.T) {
	t.Parallel()
	hub, revisions := threeModels(t)
	r, at := onMac(t, "m1-16", revisions)
	hub.Script(testhub.Fault{Place: testhub.Git, Kind: testhub.Status, Status: 404, Times: -1})
	for _, flags := range [][]string{{"--yes"}, {"--yes", "--accept-told"}} {
		code, out, errOut := r.run(at(hub.URL), append([]string{"setup"}, flags...)...)
		if code != exitHuman || !strings.Contains(errOut, "nothing proves that the files of this mirror belong to the revision") ||
			!strings.Contains(errOut, "Unset HF_ENDPOINT") {
			t.Errorf("%v: %d\n%s%s", flags, code, out, errOut)
		}
		if _, err := os.Lstat(r.home); err == nil {
			t.Errorf("%v: a home was made", flags)
		}
	}
	if asked(hub, testhub.CDN) || asked(hub, testhub.Resolve) {
		t.Errorf("a byte was asked for: %v", hub.Log())
	}
}
