package manifests

import (
	"os"
	"strings"
	"testing"

	"slipway/profiles/strict/stricttest"
)

func TestBadManifestIsRefusedAtItsLine(t *testing.T) {
	stricttest.Refused(t, 10, func(file string, data []byte) error {
		_, err := ParseManifest(file, data)
		return err
	})
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
	if m.Draft == nil || m.Draft.Repo != "incoai/Qwen3.8-27B-DFlash2" ||
		m.Draft.Revision != "015e795645c74b1a0eeef3b570031fb62e769bc5" {
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
