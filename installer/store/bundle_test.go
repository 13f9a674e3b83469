package store

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/klauspost/compress/zstd"

	"slipway/manifests"
)

func exported(t *testing.T) (manifests.Lock, []byte) {
	t.Helper()
	home, lock := openHome(t), lockOf(t, sample)
	installAll(t, home, lock, sample)
	var out bytes.Buffer
	must(t, Export(context.Background(), home, lock, &out))
	return lock, out.Bytes()
}

func TestBundleThereAndBack(t *testing.T) {
	lock, bundle := exported(t)
	if _, again := exported(t); !bytes.Equal(bundle, again) {
		t.Error("the same model gives another bundle")
	}
	for name, expected := range map[string]*manifests.Lock{"with the lock at hand": &lock,
		"on the bundle's word": nil} {
		t.Run(name, func(t *testing.T) {
			home := openHome(t)
			got, err := Import(context.Background(), home, bytes.NewReader(bundle), expected)
			must(t, err)
			if report, err := Verify(context.Background(), home, got, true); err != nil || !report.OK() {
				t.Fatalf("%+v %v", report.Bad(), err)
			}
			if want := map[bool]manifests.Proof{true: manifests.Proven,
				false: manifests.Unproven}[expected != nil]; got.Files[0].Proof != want {
				t.Errorf("files are %s, want %s", got.Files[0].Proof, want)
			}
		})
	}
}

func TestExportOfDamagedWeights(t *testing.T) {
	home, lock := openHome(t), lockOf(t, sample)
	installAll(t, home, lock, sample)
	name := filePath(lock, "config.json")
	must(t, home.Remove(name))
	must(t, home.WriteFile(name, []byte(`{"a":5}`), 0o644))
	var wrong *IntegrityError
	if err := Export(context.Background(), home, lock, &bytes.Buffer{}); !errors.As(err, &wrong) {
		t.Fatalf("got %v", err)
	}
}

func TestHostileBundles(t *testing.T) {
	lock, bundle := exported(t)
	data, err := lock.Marshal()
	must(t, err)
	other := lockOf(t, map[string]string{"config.json": `{"a":9}`})
	pack := func(headers ...tar.Header) []byte {
		var out bytes.Buffer
		z, err := zstd.NewWriter(&out)
		must(t, err)
		w := tar.NewWriter(z)
		for _, h := range headers {
			body := []byte(sample["config.json"])
			switch h.Name {
			case bundleLock:
				body = data
			case bundleSums:
				body = sumsOf(lock)
			case "other sums":
				h.Name, body = bundleSums, sumsOf(other)
			}
			if h.Typeflag == tar.TypeReg {
				h.Size = int64(len(body))
			} else {
				body = nil
			}
			h.Mode = 0o644
			must(t, w.WriteHeader(&h))
			_, err := w.Write(body)
			must(t, err)
		}
		must(t, w.Close())
		must(t, z.Close())
		return out.Bytes()
	}
	file := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg} }
	head, sums := file(bundleLock), file(bundleSums)
	rows := map[string]struct {
		bundle   []byte
		expected *manifests.Lock
	}{
		"climbs":   {pack(head, sums, file("files/../../../x")), nil},
		"absolute": {pack(head, sums, file("/etc/x")), nil},
		"a link": {pack(head, sums, tar.Header{Name: "files/config.json", Typeflag: tar.TypeSymlink,
			Linkname: "/etc/passwd"}), nil},
		"a file the lock has not":      {pack(head, sums, file("files/more.bin")), nil},
		"a file twice":                 {pack(head, sums, file("files/config.json"), file("files/config.json")), nil},
		"another size":                 {pack(head, sums, file("files/sub folder/вес й.bin")), nil},
		"no lock":                      {pack(file("files/config.json")), nil},
		"files missing":                {pack(head, sums, file("files/config.json")), nil},
		"no SHA256SUMS":                {pack(head, file("files/config.json")), nil},
		"SHA256SUMS of other bytes":    {pack(head, file("other sums"), file("files/config.json")), nil},
		"cut":                          {bundle[:len(bundle)-100], nil},
		"not zstd":                     {[]byte("hello"), nil},
		"empty":                        {nil, nil},
		"contradicts the lock at hand": {bundle, &other},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			home := openHome(t)
			if _, err := Import(context.Background(), home, bytes.NewReader(row.bundle), row.expected); err == nil {
				t.Fatal("taken")
			}
			report, err := Verify(context.Background(), home, lock, true)
			must(t, err)
			for _, f := range report.Files {
				if f.State != OK && f.State != Missing {
					t.Errorf("%s is %s", f.Path, f.State)
				}
			}
		})
	}
}
