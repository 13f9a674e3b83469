package pin

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"slipway/manifests"
)

// The first two blocks after the common prefix of the two SHAttered files (Stevens, Bursztein, Karpman, Albertini,
// Markov, 2017): two inputs with one SHA-1. A git header before them would undo the attack, so the hash is asked
// directly.
const shattered = "255044462d312e330a25e2e3cfd30a0a0a312030206f626a0a3c3c2f57696474682032203020522f4865696768742033203020522f547970652034203020522f537562747970652035203020522f46696c7465722036203020522f436f6c6f7253706163652037203020522f4c656e6774682038203020522f42697473506572436f6d706f6e656e7420383e3e0a73747265616d0affd8fffe00245348412d3120697320646561642121212121852fec092339759c39b1a1c63c4c97e1fffe01" +
	"7f46dc93a6b67e013b029aaa1db2560b45ca67d688c7f84b8c4c791fe02b3df614f86db1690901c56b45c1530afedfb76038e972722fe7ad728f0e4904e046c230570fe9d41398abe12ef5bc942be33542a4802d98b5d70f2a332ec37fac3514e74ddc0f2cc1a874cd0c78305a21566461309789606bd0bf3f98cda8044629a1"

func TestCollisionIsSeen(t *testing.T) {
	data, err := hex.DecodeString(shattered)
	if err != nil {
		t.Fatal(err)
	}
	var collision *CollisionError
	if _, err := sumSeeingCollisions(bytes.NewReader(data)); !errors.As(err, &collision) {
		t.Fatalf("got %v: the published collision is not seen", err)
	}
	if _, err := sumSeeingCollisions(strings.NewReader("honest")); err != nil {
		t.Fatal(err)
	}
}

func TestPointersFollowTheirSpecification(t *testing.T) {
	const head = "version https://git-lfs.github.com/spec/v1\n"
	oid := "oid sha256:" + strings.Repeat("ab", 32) + "\n"
	rows := map[string]struct {
		text string
		ok   bool
	}{
		"plain": {head + oid + "size 12\n", true},
		"with an extension": {head + "ext-0-x sha256:" + strings.Repeat("cd", 32) + "\n" + oid + "size 12\n",
			true},
		"zero bytes":               {head + oid + "size 0\n", true},
		"another version":          {strings.Replace(head, "v1", "v2", 1) + oid + "size 12\n", false},
		"no size":                  {head + oid, false},
		"negative size":            {head + oid + "size -1\n", false},
		"two sizes":                {head + oid + "size 1\nsize 2\n", false},
		"two oids":                 {head + oid + oid + "size 1\n", false},
		"leading zero":             {head + oid + "size 012\n", false},
		"sha1":                     {head + "oid sha1:" + strings.Repeat("ab", 20) + "\nsize 1\n", false},
		"upper case":               {head + strings.ToUpper(oid) + "size 1\n", false},
		"no last newline":          {head + oid + "size 1", false},
		"longer than a pointer is": {head + oid + "size 1\n" + strings.Repeat("x y\n", 400), false},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			if _, _, ok := parsePointer([]byte(row.text)); ok != row.ok {
				t.Errorf("taken as a pointer: %v", ok)
			}
		})
	}
}

func FuzzProve(f *testing.F) {
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, pack []byte) {
		if files, err := Prove(manifests.Revision(strings.Repeat("a", 40)), pack); err == nil {
			t.Errorf("proven: %v", files)
		}
	})
}
