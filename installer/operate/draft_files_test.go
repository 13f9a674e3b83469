package operate

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/fault"
	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/hub"
	"slipway/installer/plan"
	"slipway/installer/store"
	"slipway/manifests"
	testhub "slipway/test/hub"
)

// pocketFile is a file of the embedded model, as a repository has it.
func pocketFile(t *testing.T, name, as string) testhub.File {
	t.Helper()
	data, err := fs.ReadFile(manifests.Pocket(), name)
	if err != nil {
		t.Fatal(err)
	}
	return testhub.File{Path: as, Content: testhub.Bytes(data), LFS: len(data) > 1<<20}
}

// smallModel is Pocket as a model of a hub, with its draft in a second repository.
func smallModel(t *testing.T, server *testhub.Server) (m manifests.Manifest) {
	t.Helper()
	m, _ = manifests.ByID(manifests.PocketID)
	draft := *m.Draft
	m.ID, m.Title, m.Embedded, m.Repo, m.Draft = "small", "Small", false, "test/small", &draft
	m.Include = []string{"*.json", "*.safetensors", "*.jinja"}
	model, err := server.Add(m.Repo, pocketFile(t, "config.json", "config.json"),
		pocketFile(t, "tokenizer.json", "tokenizer.json"), pocketFile(t, "model.safetensors", "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	draft.Repo, draft.Include = "other/draft", []string{"*.json", "*.safetensors"}
	from, err := server.Add(draft.Repo, pocketFile(t, "dflash2.json", "config.json"),
		pocketFile(t, "dflash2.safetensors", "model.safetensors"),
		testhub.File{Path: "README.md", Content: testhub.Bytes([]byte("not wanted"))})
	if err != nil {
		t.Fatal(err)
	}
	m.Revision, m.DownloadBytes = model.Revision, model.Lock().TotalBytes()
	draft.Revision, draft.DownloadBytes = from.Revision, from.Lock().TotalBytes()
	return m
}

// smallOperator sets up the models of a test hub.
func smallOperator(t *testing.T, server *testhub.Server, m manifests.Manifest) *Operator {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := operator(t, &caller{}, filepath.Join(dir, "home"))
	o.Environment.Manifests = []manifests.Manifest{m}
	o.Environment.Getenv = func(name string) string {
		switch name {
		case "HF_ENDPOINT":
			return server.URL
		case "HF_HUB_DISABLE_IMPLICIT_TOKEN":
			return "1"
		}
		return ""
	}
	return o
}

// A model's draft from a repository of its own goes the same way as the model: list, plan, ceiling, consent, download,
// wrong bytes, verification, receipt, status, launch, garbage and uninstall.
func TestDraftOfASecondRepositoryIsSetUpWithItsModel(t *testing.T) {
	server, err := testhub.Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	m, ctx := smallModel(t, server), t.Context()
	o := smallOperator(t, server, m)
	in := SetupInput{Input: installer.Input{Request: plan.Request{Model: "small", Draft: "dflash2"}}, Yes: true}
	draftFolder := store.ModelDir(m.Draft.Repo, m.Draft.Revision)
	inHome := func(path string) string { return filepath.Join(o.Home, filepath.FromSlash(path)) }

	look, err := o.DryRun(ctx, in)
	if err != nil || !look.CanApply {
		t.Fatalf("%+v, %v", look.Blockers, err)
	}
	var ids []string
	for _, a := range look.Actions {
		ids = append(ids, a.ID)
	}
	if got := strings.Join(ids, " "); got != "list draft-list home model draft engine settings" {
		t.Fatalf("actions %s", got)
	}
	if !strings.Contains(look.DraftCost, "Draft dflash2 takes") || !strings.Contains(look.DraftCost, "to download") ||
		!strings.Contains(look.DraftCost, "context") {
		t.Fatalf("cost %q", look.DraftCost)
	}
	without := in
	without.Draft = "none"
	if alone, err := o.DryRun(ctx, without); err != nil || len(alone.Actions) != 5 || alone.DraftCost != "" ||
		alone.Digest == look.Digest {
		t.Fatalf("without a draft: %+v, %v", alone.Actions, err)
	}

	both := look.Prepared.DownloadBytes()
	if all := m.DownloadBytes + m.Draft.DownloadBytes; both < all {
		t.Fatalf("%d bytes planned, model and draft have %d", both, all)
	}
	tight := in
	tight.MaxDownloadBytes = m.DownloadBytes
	if _, err := o.Setup(ctx, tight); !errors.As(err, new(*installer.DownloadError)) {
		t.Fatalf("a bound below model and draft: %v", err)
	}
	large := m
	draft := *m.Draft
	draft.DownloadBytes, large.Draft = 1000, &draft
	o.Environment.Manifests[0] = large
	if _, err := o.Setup(ctx, in); !errors.As(err, new(*apply.CeilingError)) {
		t.Fatalf("a draft above its ceiling: %v", err)
	}
	if _, err := os.Lstat(o.Home); err == nil {
		t.Fatal("a home was made")
	}
	o.Environment.Manifests[0] = m

	weights := testhub.SHA256(pocketFile(t, "dflash2.safetensors", "").Content) // so the CDN names them
	server.Script(testhub.Fault{Place: testhub.CDN, Path: weights, Kind: testhub.WrongBytes, Times: -1})
	if _, err := o.Setup(ctx, in); !errors.As(err, new(*hub.WrongBytesError)) || classOfError(err) != fault.Integrity {
		t.Fatalf("wrong bytes: %v", err)
	}
	if _, err := os.Lstat(inHome(draftFolder + "/model.safetensors")); err == nil {
		t.Fatal("wrong bytes have the final name")
	}
	server.Calm()
	server.Forget()
	answer, err := o.Setup(ctx, in)
	if err != nil || !answer.Continued {
		t.Fatalf("%+v, %v", answer, err)
	}
	for _, seen := range server.Log() {
		if seen.Place == testhub.CDN && seen.To > 0 && !strings.Contains(seen.Path, m.Draft.Repo) {
			t.Errorf("the model was fetched again: %+v", seen)
		}
	}
	if got, err := os.ReadFile(inHome(draftFolder + "/model.safetensors")); err != nil {
		t.Fatal(err)
	} else if want, _ := fs.ReadFile(manifests.Pocket(), "dflash2.safetensors"); !bytes.Equal(got, want) {
		t.Fatal("other bytes are installed")
	}

	var settings string
	err = o.inHome(func(home *apply.Home) error {
		set, err := apply.ReadSettings(home)
		if err != nil {
			return err
		}
		started, err := apply.ServerSettings(home, set.Decisions)
		settings = started.Draft + " " + started.DraftFolder
		receipt, missing := home.Receipt(answer.Digest)
		listed := slices.ContainsFunc(receipt.Actions, func(d apply.Done) bool {
			return d.ID == "draft" && slices.ContainsFunc(d.Items, func(i apply.Item) bool {
				return i.Path == draftFolder+"/model.safetensors" && i.SHA256 != ""
			})
		})
		if !listed {
			t.Error("the receipt does not list the draft's file")
		}
		return errors.Join(err, missing)
	})
	if err != nil || settings != "dflash2 "+draftFolder {
		t.Fatalf("the server gets %q, %v", settings, err)
	}
	if status, err := o.Status(ctx); err != nil || status.Draft != "dflash2" {
		t.Errorf("status: %q, %v", status.Draft, err)
	}
	if found, err := o.GC(ctx, GCInput{DryRun: true}); err != nil || len(found.Garbage) > 0 && strings.Contains(
		found.Garbage[0].Path, draftFolder) {
		t.Errorf("garbage: %+v, %v", found.Garbage, err)
	}
	flip(t, inHome(draftFolder+"/model.safetensors"))
	if found, err := o.Verify(ctx, VerifyInput{Deep: true}); err != nil || len(found.Faults) != 1 ||
		found.Faults[0].Path != draftFolder+"/model.safetensors" {
		t.Errorf("verify: %+v, %v", found.Faults, err)
	}
	in.Deep = true
	if _, err := o.Setup(ctx, in); err != nil {
		t.Fatal(err)
	}
	if found, err := o.Verify(ctx, VerifyInput{Deep: true}); err != nil || !found.OK {
		t.Errorf("verify after repair: %+v, %v", found.Faults, err)
	}
	removed, err := o.Uninstall(ctx, UninstallInput{Yes: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(o.Home); err == nil {
		t.Errorf("left: %+v", removed)
	}
}

// flip changes one byte of a file and leaves size and time as they are.
func flip(t *testing.T, name string) {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(name)
	if err == nil {
		data[len(data)/2] ^= 1
		err = errors.Join(os.Chmod(name, 0o644), os.WriteFile(name, data, 0o644), os.Chmod(name, 0o444),
			os.Chtimes(name, info.ModTime(), info.ModTime()))
	}
	if err != nil {
		t.Fatal(err)
	}
}
