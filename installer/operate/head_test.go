package operate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/fault"
	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/hub"
	"slipway/installer/plan"
	"slipway/installer/store"
	"slipway/manifests"
	"slipway/mtphead"
	"slipway/safetensors"
	testhub "slipway/test/hub"
)

// tensors are those of a file, in its order.
func tensors(t *testing.T, data []byte) (all []safetensors.Tensor) {
	t.Helper()
	entries, err := safetensors.ReadHeader("file", data, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, safetensors.Tensor{Name: e.Name, DType: e.DType, Shape: e.Shape, Data: data[e.Begin:e.End]})
	}
	return all
}

// headless is Pocket's 4-bit pack without its head, and its original in two shards of which parts are wanted.
func headless(t *testing.T, server *testhub.Server) manifests.Manifest {
	t.Helper()
	pack, err := fs.ReadFile(manifests.Pocket(), "model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("../../engine/model/testdata/bf16/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	var trunk []safetensors.Tensor
	for _, tensor := range tensors(t, pack) {
		if !strings.HasPrefix(tensor.Name, "mtp.") {
			trunk = append(trunk, tensor)
		}
	}
	shards, where := map[string][]safetensors.Tensor{}, map[string]string{}
	for _, tensor := range tensors(t, file) {
		name := "model-00001-of-00002.safetensors"
		if strings.HasPrefix(tensor.Name, "mtp.layers") {
			name = "model-00002-of-00002.safetensors"
		}
		shards[name], where[tensor.Name] = append(shards[name], tensor), name
	}
	index, err := json.Marshal(map[string]any{"weight_map": where})
	if err != nil {
		t.Fatal(err)
	}
	original := []testhub.File{{Path: mtphead.IndexName, Content: testhub.Bytes(index)}}
	for name, tensors := range shards {
		original = append(original, testhub.File{Path: name, Content: testhub.Bytes(safetensors.Marshal(tensors)),
			LFS: true})
	}
	m, _ := manifests.ByID(manifests.PocketID)
	m.ID, m.Title, m.Embedded, m.Repo = "small", "Small", false, "test/small"
	m.Include = []string{"*.json", "*.safetensors"}
	model, err := server.Add(m.Repo, pocketFile(t, "config.json", "config.json"),
		pocketFile(t, "tokenizer.json", "tokenizer.json"), testhub.File{Path: "model.safetensors", LFS: true,
			Content: testhub.Bytes(safetensors.Marshal(trunk))})
	if err != nil {
		t.Fatal(err)
	}
	from, err := server.Add("other/original", original...)
	if err != nil {
		t.Fatal(err)
	}
	m.Revision, m.DownloadBytes = model.Revision, model.Lock().TotalBytes()
	bytes, _ := mtphead.Bytes(mtphead.Shapes(m.Geometry))
	m.Draft = &manifests.Draft{Kind: "mtp", Repo: "other/original", Revision: from.Revision, Tensors: "mtp.",
		Include: []string{"*.safetensors", mtphead.IndexName}, DownloadBytes: bytes, License: m.License}
	return m
}

// pocketHead is the head of Pocket's own pack, and the digest of the original's tensors.
func pocketHead(t *testing.T) (file []byte, original manifests.Digest) {
	t.Helper()
	data, err := os.ReadFile("../../engine/model/testdata/bf16/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	for _, tensor := range tensors(t, data) { // in the order of their names
		if strings.HasPrefix(tensor.Name, "mtp.") {
			h.Write(tensor.Data)
		}
	}
	pack, err := fs.ReadFile(manifests.Pocket(), "model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	var head []safetensors.Tensor
	for _, tensor := range tensors(t, pack) {
		if strings.HasPrefix(tensor.Name, "mtp.") {
			head = append(head, tensor)
		}
	}
	return safetensors.Marshal(head), manifests.DigestOf([32]byte(h.Sum(nil)))
}

// A head that a pack has dropped is cut out of the original's shards by byte range, through a stop, wrong bytes and a
// hub without ranges, and is then a proven file as any other. Without a digest of it nothing proves it, and nobody's
// word is taken unasked.
func TestHeadIsCutOutOfTheShardsOfTheOriginal(t *testing.T) {
	server, err := testhub.Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	m, ctx := headless(t, server), t.Context()
	o := smallOperator(t, server, m)
	in := SetupInput{Input: installer.Input{Request: plan.Request{Model: "small", Draft: "mtp"}}, Yes: true}
	folder := store.ModelDir(m.Draft.Repo, m.Draft.Revision)
	inHome := func(path string) string { return filepath.Join(o.Home, filepath.FromSlash(path)) }
	want, digest := pocketHead(t)

	_, err = o.Setup(ctx, in)
	if !errors.As(err, new(*apply.RangeProofError)) || classOfError(err) != fault.Consent ||
		!strings.Contains(err.Error(), "--accept-told") {
		t.Fatalf("a head that nothing proves: %v", err)
	}
	if _, err := os.Lstat(o.Home); err == nil {
		t.Fatal("a home was made")
	}
	told := in
	told.AcceptUnproven = true
	if _, err := o.Setup(ctx, told); !errors.As(err, new(*ConsentError)) {
		t.Fatalf("--yes alone covers bytes that nothing proves: %v", err)
	}

	server.Script(testhub.Fault{Place: testhub.CDN, Kind: testhub.Whole, Times: -1})
	m.Draft.SHA256 = digest
	look, err := o.DryRun(ctx, in)
	if err != nil || !strings.Contains(look.DraftCost, "2.79 MB to download") {
		t.Fatalf("cost %q, %v", look.DraftCost, err)
	}
	for _, a := range look.Actions {
		if a.ID == "draft" && (!strings.Contains(a.Sentence, "by byte range") || len(a.Consent) != 2) {
			t.Errorf("%v %s", a.Consent, a.Sentence)
		}
	}
	if _, err := o.Setup(ctx, in); !errors.As(err, new(*hub.PartsError)) || classOfError(err) != fault.Network {
		t.Fatalf("a hub without ranges: %v", err)
	}
	if _, err := os.Lstat(o.Home); err == nil {
		t.Fatal("a home was made")
	}
	server.Calm()

	// It stops in the middle of the head, and goes on from there.
	server.Forget()
	stopped, stop := context.WithCancelCause(ctx)
	server.OnServed(func(total int64) {
		if total > m.DownloadBytes+1_000_000 {
			stop(context.Canceled)
		}
	})
	if _, err := o.Setup(stopped, in); err == nil {
		t.Fatal("it was not stopped")
	}
	server.OnServed(nil)
	server.Forget()
	server.Script(testhub.Fault{Place: testhub.CDN, Kind: testhub.WrongBytes, Skip: 2, Times: -1, After: 1000})
	_, err = o.Setup(ctx, in)
	if !errors.As(err, new(*hub.WrongBytesError)) || classOfError(err) != fault.Integrity {
		t.Fatalf("wrong bytes: %v", err)
	}
	if fetched := servedBytes(server); fetched > m.Draft.DownloadBytes {
		t.Errorf("%d bytes were fetched after the stop", fetched)
	}
	if _, err := os.Lstat(inHome(folder + "/" + mtphead.FileName)); err == nil {
		t.Fatal("wrong bytes became a head")
	}
	server.Calm()
	server.Forget()
	answer, err := o.Setup(ctx, in)
	if err != nil || !answer.Continued {
		t.Fatalf("%+v, %v", answer, err)
	}
	if all := servedBytes(server); all > m.Draft.DownloadBytes+1<<20 {
		t.Errorf("%d bytes were served for a head of %d", all, m.Draft.DownloadBytes)
	}
	got, err := os.ReadFile(inHome(folder + "/" + mtphead.FileName))
	if err != nil {
		t.Fatal(err)
	}
	made, own := tensors(t, got), tensors(t, want)
	if len(made) != len(own) {
		t.Fatalf("%d tensors, Pocket's own head has %d", len(made), len(own))
	}
	for i := range own {
		if made[i].Name != own[i].Name || !bytes.Equal(made[i].Data, own[i].Data) {
			t.Errorf("%s is not as in Pocket's own head", own[i].Name)
		}
	}

	err = o.inHome(func(home *apply.Home) error {
		set, err := apply.ReadSettings(home)
		if err != nil {
			return err
		}
		started, err := apply.ServerSettings(home, set.Decisions)
		if err != nil || started.Draft != "mtp" || started.DraftFolder != folder {
			t.Errorf("the server gets %s in %q, %v", started.Draft, started.DraftFolder, err)
		}
		lock, err := store.LoadLock(home.Root, m.Draft.Repo, m.Draft.Revision)
		if err == nil && lock.Unproven() != 0 {
			t.Error("its lock is unproven")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	flip(t, inHome(folder+"/"+mtphead.FileName))
	if found, err := o.Verify(ctx, VerifyInput{Deep: true}); err != nil || len(found.Faults) != 1 {
		t.Errorf("verify: %+v, %v", found.Faults, err)
	}
	in.Deep = true
	if _, err := o.Setup(ctx, in); err != nil {
		t.Fatal(err)
	}
	if found, err := o.Verify(ctx, VerifyInput{Deep: true}); err != nil || !found.OK {
		t.Errorf("verify after repair: %+v, %v", found.Faults, err)
	}
	server.Forget()
	if again, err := o.Setup(ctx, in); err != nil || again.Changed != 0 || len(server.Log()) != 0 {
		t.Errorf("set up again: %d changes, %d requests, %v", again.Changed, len(server.Log()), err)
	}
	removed, err := o.Uninstall(ctx, UninstallInput{Yes: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(o.Home); err == nil {
		t.Errorf("left: %+v", removed)
	}

	// With the person's word a head without a digest is taken, and its lock says so.
	m.Draft.SHA256 = ""
	told.GrantUnproven = true
	if _, err := o.Setup(ctx, told); err != nil {
		t.Fatal(err)
	}
	err = o.inHome(func(home *apply.Home) error {
		lock, err := store.LoadLock(home.Root, m.Draft.Repo, m.Draft.Revision)
		if err == nil && lock.Unproven() != 1 {
			t.Error("its lock says that it is proven")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// servedBytes are those of the original.
func servedBytes(server *testhub.Server) (n int64) {
	for _, seen := range server.Log() {
		if strings.Contains(seen.Path, "other/original") {
			n += seen.To - seen.From
		}
	}
	return n
}
