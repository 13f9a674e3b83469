package store

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"

	"slipway/fault"
	"slipway/manifests"
)

// BundleError: the file is no bundle, or not a whole one.
type BundleError struct{ What string }

func (e *BundleError) Error() string { return "the bundle cannot be used: " + e.What }

// Fault: see package fault.
func (e *BundleError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Integrity, Step: fault.CopyBundle}
}

// ReadBundleLock reads the lock at the head of a bundle, so that it can be shown and compared before anything is
// installed. Nothing vouches for it but whoever made the bundle.
func ReadBundleLock(in io.Reader) (manifests.Lock, error) {
	archive, closeAll, err := openBundle(in)
	if err != nil {
		return manifests.Lock{}, err
	}
	defer closeAll()
	return nextLock(archive)
}

// Import installs a bundle with no network. expected, if not nil, is the lock available (shipped or made before): the
// bundle's own must agree with it, and files are checked against expected. Without one the bundle's word is taken, and
// every file is marked told. What was installed before a failure stays: it is whole and checked.
func Import(ctx context.Context, home *os.Root, in io.Reader, expected *manifests.Lock) (manifests.Lock, error) {
	archive, closeAll, err := openBundle(in)
	if err != nil {
		return manifests.Lock{}, err
	}
	defer closeAll()
	lock, err := nextLock(archive)
	if err != nil {
		return lock, err
	}
	if err := checkSums(archive, lock); err != nil {
		return lock, err
	}
	if expected != nil {
		if err := Agree(*expected, lock); err != nil {
			return lock, err
		}
		for _, f := range expected.Files {
			if _, ok := lock.File(f.Path); !ok {
				return lock, &BundleError{"it lacks " + f.Path}
			}
		}
		lock = *expected
	} else {
		for i := range lock.Files {
			lock.Files[i].Proof = manifests.Unproven
		}
	}
	report, err := Verify(ctx, home, lock, false)
	if err != nil {
		return lock, err
	}
	var missing int64
	for _, bad := range report.Bad() {
		missing += bad.ExpectedBytes
	}
	if err := RequireSpace(home, lock.Files, missing); err != nil {
		return lock, err
	}
	seen := map[string]bool{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return lock, &BundleError{"it is damaged: " + err.Error()}
		}
		name, ours := strings.CutPrefix(header.Name, bundleFiles)
		f, wanted := lock.File(name)
		switch {
		case !ours || header.Typeflag != tar.TypeReg:
			return lock, &BundleError{fmt.Sprintf("it holds %q, which no bundle has", header.Name)}
		case seen[name]:
			return lock, &BundleError{fmt.Sprintf("it holds %q twice", name)}
		case !wanted:
			return lock, &BundleError{fmt.Sprintf("it holds %q, which its lock does not name", name)}
		case header.Size != f.Size:
			return lock, &IntegrityError{Path: name, Expected: f.SHA256, ExpectedBytes: f.Size, FoundBytes: header.Size}
		}
		seen[name] = true
		if err := Install(ctx, home, lock, name, bundled{archive}); err != nil {
			return lock, err
		}
	}
	for _, f := range lock.Files {
		if !seen[f.Path] {
			return lock, &BundleError{"it ends before " + f.Path}
		}
	}
	return lock, nil
}

// bundled names a read error for what it is: the bundle's, not the disk's.
type bundled struct{ r io.Reader }

func (b bundled) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &BundleError{"it is damaged: " + err.Error()}
	}
	return n, err
}

func openBundle(in io.Reader) (*tar.Reader, func(), error) {
	unpacked, err := zstd.NewReader(in, zstd.WithDecoderMaxMemory(256<<20), zstd.WithDecoderMaxWindow(32<<20))
	if err != nil {
		return nil, nil, &BundleError{"it is not zstd"}
	}
	return tar.NewReader(unpacked), unpacked.Close, nil
}

// checkSums reads SHA256SUMS, which is for people with sha256sum(1): it must say what the lock says, or one of the two
// was changed.
func checkSums(archive *tar.Reader, lock manifests.Lock) error {
	want := sumsOf(lock)
	header, err := archive.Next()
	if err != nil || header.Name != bundleSums || header.Typeflag != tar.TypeReg {
		return &BundleError{"no " + bundleSums + " follows its lock"}
	}
	found, err := io.ReadAll(io.LimitReader(archive, int64(len(want))+1))
	if err != nil {
		return &BundleError{"it is damaged: " + err.Error()}
	}
	if !bytes.Equal(found, want) {
		return &BundleError{bundleSums + " and the lock in it disagree"}
	}
	return nil
}

func nextLock(archive *tar.Reader) (manifests.Lock, error) {
	header, err := archive.Next()
	if err != nil || header.Name != bundleLock || header.Size > 16<<20 {
		return manifests.Lock{}, &BundleError{"it does not begin with a lock"}
	}
	data, err := io.ReadAll(io.LimitReader(archive, header.Size))
	if err != nil {
		return manifests.Lock{}, &BundleError{"its lock is cut"}
	}
	lock, err := manifests.ParseLock(data)
	if err != nil {
		return lock, &BundleError{err.Error()}
	}
	return lock, nil
}
