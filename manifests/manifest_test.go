package manifests

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/profiles/strict"
)

// Every bad fixture carries "# want: MESSAGE" on its bad line: the error must name that line and hold that message.
func TestBadManifestIsRefusedAtItsLine(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.toml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d fixtures, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".toml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			line, want := 0, ""
			for i, text := range strings.Split(string(data), "\n") {
				if _, message, ok := strings.Cut(text, "# want: "); ok {
					line, want = i+1, message
				}
			}
			_, err = ParseManifest(file, data)
			var fault *strict.Error
			if !errors.As(err, &fault) {
				t.Fatalf("accepted, or not a strict.Error: %v", err)
			}
			if fault.File != file || fault.Line != line || !strings.Contains(fault.Why, want) {
				t.Errorf("got %s:%d %q\nwant line %d with %q", fault.File, fault.Line, fault.Why, line, want)
			}
		})
	}
}

// The base of the bad fixtures must itself be good, or each would fail for the same wrong reason.
func TestBadFixturesAreBadOnlyAtTheirLine(t *testing.T) {
	data, err := os.ReadFile("testdata/bad/branch-as-revision.toml")
	if err != nil {
		t.Fatal(err)
	}
	good := strings.Replace(string(data), `revision = "main"`, `revision = ""`, 1)
	if _, err := ParseManifest("branch-as-revision.toml", []byte(good)); err != nil {
		t.Error(err)
	}
}

func TestBundledManifests(t *testing.T) {
	all := All()
	for _, id := range []string{"pocket", "qwen3.5-4b-4bit", "qwen3.5-9b-4bit", "qwen3.8-27b-mtplx-bare-speed"} {
		if _, ok := ByID(id); !ok {
			t.Errorf("%s is not bundled", id)
		}
	}
	if all[0].ID != PocketID {
		t.Errorf("the first manifest is %s, want pocket", all[0].ID)
	}
	for _, m := range all {
		if m.Pinned() != (m.Revision != "" && (m.Draft == nil || m.Draft.Revision != "")) {
			t.Errorf("%s: Pinned is wrong", m.ID)
		}
		for _, other := range []string{"README.md", ".gitattributes", "sub/config.json"} {
			if m.Wants(other) {
				t.Errorf("%s wants %s", m.ID, other)
			}
		}
		if !m.Wants("config.json") || !m.Wants("tokenizer.json") {
			t.Errorf("%s does not want its own config or tokenizer", m.ID)
		}
	}
}

// The two pins of the reference setup come from issue 3; a typo would install other bytes.
func TestReferencePinsAreThoseOfTheIssue(t *testing.T) {
	m, _ := ByID("qwen3.8-27b-mtplx-bare-speed")
	if m.Repo != "Youssofal/Qwen3.8-27B-MTPLX-Bare-Speed" || m.Revision != "b59d7002368575f08a58ba0d26686b53a9c162d6" {
		t.Errorf("target is %s@%s", m.Repo, m.Revision)
	}
	if m.Draft == nil || m.Draft.Repo != "incoai/Qwen3.8-27B-DFlash2" || m.Draft.Revision != "015e795645c74b1a0eeef3b570031fb62e769bc5" {
		t.Errorf("draft is %+v", m.Draft)
	}
}

func TestRepositoryNames(t *testing.T) {
	for repo, ok := range map[string]bool{
		"org/name": true, "Qwen/Qwen3.5-9B": true, "a_b/c.d-e": true,
		"": false, "name": false, "a/b/c": false, "../name": false, "org/..": false, "org/a--b": false, ".org/a": false,
		"org/a\x00b": false, "org/a b": false, "org/имя": false, "org/-a": false,
	} {
		if err := ValidateRepo(repo); (err == nil) != ok {
			t.Errorf("%q: %v", repo, err)
		}
	}
}
