package pin_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"slipway/installer/hub"
	"slipway/installer/pin"
	"slipway/manifests"
	testhub "slipway/test/hub"
)

func serve(t *testing.T, files ...testhub.File) (*testhub.Server, *testhub.Repo) {
	t.Helper()
	server, err := testhub.Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	if files == nil {
		files = []testhub.File{
			{Path: "config.json", Content: testhub.Bytes([]byte(`{"a":1}`))},
			{Path: "empty", Content: testhub.Bytes(nil)},
			{Path: "model.safetensors", Content: testhub.Pattern(1, 3<<20), LFS: true},
			{Path: "sub folder/вес.bin", Content: testhub.Pattern(2, 4<<20), LFS: true},
			{Path: "long.txt", Content: testhub.Bytes(bytes.Repeat([]byte("line\n"), 10_000))},
			{Path: "longer.txt", Content: testhub.Bytes(bytes.Repeat([]byte("line\n"), 10_001))},
		}
	}
	repo, err := server.Add("org/model", files...)
	if err != nil {
		t.Fatal(err)
	}
	return server, repo
}

func client(t *testing.T, config hub.Config) *hub.Client {
	t.Helper()
	config.Sleep = func(ctx context.Context, d time.Duration) error { return ctx.Err() }
	c, err := hub.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestLockIsProvenFromTheCommitDown(t *testing.T) {
	server, repo := serve(t)
	lock, sentence, err := pin.Lock(t.Context(), client(t, hub.Config{Origin: server.URL}),
		pin.Ask{Repo: repo.Name, Revision: repo.Revision, Now: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	want := repo.Lock()
	for _, f := range want.Files {
		got, ok := lock.File(f.Path)
		if !ok || got != f {
			t.Errorf("%s: got %+v, want %+v", f.Path, got, f)
		}
	}
	if sentence == "" {
		t.Error("nothing says what proven means")
	}
	if err := pin.Contradicts(want, lock); err != nil {
		t.Error(err)
	}
	posts := 0
	for _, seen := range server.Log() {
		if seen.Place == testhub.Git && seen.Method == "POST" {
			posts++
		}
	}
	if posts != 1 {
		t.Errorf("%d git requests, want one with one want", posts)
	}
}

func TestOnlyTheWantedFilesAreLocked(t *testing.T) {
	server, repo := serve(t)
	lock, _, err := pin.Lock(t.Context(), client(t, hub.Config{Origin: server.URL}),
		pin.Ask{Repo: repo.Name, Revision: repo.Revision, Include: []string{"*.json", "sub folder/*"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(lock.Files) != 2 {
		t.Errorf("%+v", lock.Files)
	}
}

func TestUnprovenHashesAreNeverAcceptedSilently(t *testing.T) {
	server, repo := serve(t)
	broken := testhub.Fault{Place: testhub.Git, Kind: testhub.Status, Status: 503, Times: -1}
	ask := pin.Ask{Repo: repo.Name, Revision: repo.Revision}
	server.Script(broken)
	t.Run("not without being accepted", func(t *testing.T) {
		_, _, err := pin.Lock(t.Context(), client(t, hub.Config{Origin: server.URL}), ask)
		if !errors.Is(err, pin.ErrUnproven) || !strings.Contains(err.Error(), "--accept-told") {
			t.Fatalf("got %v", err)
		}
	})
	ask.AcceptUnproven = true
	t.Run("never from a mirror", func(t *testing.T) {
		_, _, err := pin.Lock(t.Context(), client(t, hub.Config{Endpoint: server.URL}), ask)
		if !errors.Is(err, pin.ErrUnproven) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("accepted, and marked", func(t *testing.T) {
		lock, _, err := pin.Lock(t.Context(), client(t, hub.Config{Origin: server.URL}), ask)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range lock.Files {
			if f.Proof != manifests.Unproven {
				t.Errorf("%s is %s", f.Path, f.Proof)
			}
		}
		if err := pin.Contradicts(repo.Lock(), lock); err != nil {
			t.Error(err)
		}
	})
	t.Run("a mirror that proves is as good as the hub", func(t *testing.T) {
		server.Calm()
		lock, _, err := pin.Lock(t.Context(), client(t, hub.Config{Endpoint: server.URL}), ask)
		if err != nil || lock.Files[0].Proof != manifests.Proven {
			t.Fatalf("%v", err)
		}
	})
}

func TestCommitThatTheHubDoesNotGiveOutIsNotLocked(t *testing.T) {
	server, repo := serve(t)
	_, _, err := pin.Lock(t.Context(), client(t, hub.Config{Origin: server.URL}),
		pin.Ask{Repo: repo.Name, Revision: manifests.Revision(strings.Repeat("ab", 20))})
	if err == nil {
		t.Fatal("a commit that does not exist was locked")
	}
}

func TestLockThatContradictsTheProofIsRefused(t *testing.T) {
	_, repo := serve(t)
	proven := repo.Lock()
	for name, change := range map[string]func(*manifests.File){
		"hash": func(f *manifests.File) { f.SHA256 = manifests.DigestOf([32]byte{7}) },
		"size": func(f *manifests.File) { f.Size++ },
		"name": func(f *manifests.File) { f.Path = "config.jsom" },
	} {
		t.Run(name, func(t *testing.T) {
			lock := repo.Lock()
			change(&lock.Files[0])
			var contradiction *pin.ContradictionError
			if err := pin.Contradicts(lock, proven); !errors.As(err, &contradiction) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// One byte of the pack anywhere: never another list of files.
func TestNoByteOfThePackCanBeChanged(t *testing.T) {
	server, repo := serve(t)
	pack, err := client(t, hub.Config{Origin: server.URL}).Pack(t.Context(), repo.Name, repo.Revision)
	if err != nil {
		t.Fatal(err)
	}
	right, err := pin.Prove(repo.Revision, pack)
	if err != nil {
		t.Fatal(err)
	}
	for at := range pack {
		if at%7 != 0 && at > 64 {
			continue
		}
		changed := bytes.Clone(pack)
		changed[at] ^= 0x10
		files, err := pin.Prove(repo.Revision, changed)
		if err != nil {
			continue
		}
		for i := range files {
			if files[i] != right[i] {
				t.Fatalf("byte %d: %+v is taken as proven", at, files[i])
			}
		}
	}
	if _, err := pin.Prove(manifests.Revision(strings.Repeat("0", 40)), pack); err == nil {
		t.Error("another revision is proven by the same pack")
	}
	if _, err := pin.Prove(repo.Revision, pack[:len(pack)/2]); err == nil {
		t.Error("half a pack proves all")
	}
}

func TestHostileNamesInGit(t *testing.T) {
	for name, file := range map[string]string{"case collision": "CONFIG.json", "colon": "a:b", "backslash": `a\b`} {
		t.Run(name, func(t *testing.T) {
			server, repo := serve(t, testhub.File{Path: "config.json", Content: testhub.Bytes([]byte("1"))},
				testhub.File{Path: file, Content: testhub.Bytes([]byte("2"))})
			_, _, err := pin.Lock(t.Context(), client(t, hub.Config{Origin: server.URL}),
				pin.Ask{Repo: repo.Name, Revision: repo.Revision})
			var unusable *pin.UnusableError
			if !errors.As(err, &unusable) || strings.Contains(err.Error(), "files[") {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestTokenGoesToTheOriginsGitOnly(t *testing.T) {
	server, repo := serve(t)
	repo.Private = true
	if _, err := client(t, hub.Config{Origin: server.URL, Token: server.Token}).Pack(t.Context(), repo.Name,
		repo.Revision); err != nil {
		t.Fatal(err)
	}
	server.Forget()
	client(t, hub.Config{Endpoint: server.URL, Token: server.Token}).Pack(t.Context(), repo.Name, repo.Revision)
	for _, seen := range server.Log() {
		if seen.Authorization != "" {
			t.Error("a mirror saw the token")
		}
	}
}
