package apply

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"slipway/installer/plan"
	"slipway/manifests"
)

// asEdited is a file as some editors save it: with a mark of byte order and with other ends of lines.
func asEdited(data []byte) []byte {
	return append([]byte("\ufeff"), bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))...)
}

// What editors add is accepted in settings, which people write, and in nothing that is hashed or that slipway alone
// writes.
func TestMarksOfEditorsAreAcceptedInSettingsOnly(t *testing.T) {
	home := makeHome(t)
	d := plan.Decisions{}
	d.Model.ID, d.Request.Model, d.Request.Port = "pocket", "pocket", 4321
	if err := WriteSettings(home, Settings{Decisions: d}); err != nil {
		t.Fatal(err)
	}
	edit := func(name string) {
		t.Helper()
		data, err := home.Root.ReadFile(name)
		if err == nil {
			err = home.Root.WriteFile(name, asEdited(data), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	edit(plan.SettingsPath)
	if set, err := ReadSettings(home); err != nil || set.Decisions.Request.Port != 4321 {
		t.Errorf("settings: %+v, %v", set.Decisions.Request, err)
	}

	digest := "sha256:" + strings.Repeat("a", 64)
	journalOf(t, home, digest)
	whole, err := home.Root.ReadFile(journalPath)
	if err != nil {
		t.Fatal(err)
	}
	for _, marked := range [][]byte{asEdited(whole), bytes.ReplaceAll(whole, []byte("\n"), []byte("\r\n"))} {
		if err := home.Root.WriteFile(journalPath, marked, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenDigest(home); !errors.As(err, new(*JournalError)) {
			t.Errorf("a journal that was edited is read: %v", err)
		}
	}
	if err := home.writeReceipt(Receipt{SchemaVersion: 1, Digest: digest, Time: stamp()}); err != nil {
		t.Fatal(err)
	}
	edit(ReceiptPath(digest))
	if _, err := home.Receipt(digest); !errors.As(err, new(*ReceiptError)) {
		t.Errorf("a receipt that was edited is read: %v", err)
	}
	lock := manifests.Lock{SchemaVersion: manifests.LockSchemaVersion, Repo: "a/b", Source: "test",
		Revision: manifests.Revision(strings.Repeat("1", 40)), LockedAt: time.Unix(0, 0).UTC(),
		Files: []manifests.File{{Path: "x", Size: 1, SHA256: manifests.Digest(digest), Proof: manifests.Proven}}}
	data, err := lock.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manifests.ParseLock(data); err != nil {
		t.Fatal(err)
	}
	if _, err := manifests.ParseLock(asEdited(data)); err == nil {
		t.Error("a lock that was edited is read")
	}
}
