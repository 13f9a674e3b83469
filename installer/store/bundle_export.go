package store

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"

	"slipway/manifests"
)

// A bundle is a zstd-compressed tar: lock.json, SHA256SUMS in the form of sha256sum(1), then files/PATH in the lock's
// order. The same lock gives the same bytes always: no times, no owners.
const (
	bundleLock  = "lock.json"
	bundleSums  = "SHA256SUMS"
	bundleFiles = "files/"
)

// Export writes a bundle of an installed model. Every file is hashed as it goes: a wrong byte is an *IntegrityError and
// the bundle is not to be used.
func Export(ctx context.Context, home *os.Root, lock manifests.Lock, out io.Writer) error {
	data, err := lock.Marshal()
	if err != nil {
		return err
	}
	packed, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2))
	if err != nil {
		return err
	}
	archive := tar.NewWriter(packed)
	for _, part := range []struct {
		name string
		data []byte
	}{{bundleLock, data}, {bundleSums, sumsOf(lock)}} {
		if err := archive.WriteHeader(bundleHeader(part.name, int64(len(part.data)))); err != nil {
			return err
		}
		if _, err := archive.Write(part.data); err != nil {
			return err
		}
	}
	for _, f := range lock.Files {
		if err := exportFile(ctx, home, lock, f, archive); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return packed.Close()
}

// sumsOf is what sha256sum(1) would write of the files of a bundle.
func sumsOf(lock manifests.Lock) []byte {
	var sums bytes.Buffer
	for _, f := range lock.Files {
		fmt.Fprintf(&sums, "%s  %s%s\n", f.SHA256.Hex(), bundleFiles, f.Path)
	}
	return sums.Bytes()
}

func exportFile(ctx context.Context, home *os.Root, lock manifests.Lock, f manifests.File, archive *tar.Writer) error {
	src, err := home.Open(filePath(lock, f.Path))
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	if info.Size() != f.Size {
		return &IntegrityError{Path: f.Path, Expected: f.SHA256, ExpectedBytes: f.Size, FoundBytes: info.Size()}
	}
	if err := archive.WriteHeader(bundleHeader(bundleFiles+f.Path, f.Size)); err != nil {
		return err
	}
	found, err := HashOf(ctx, io.TeeReader(io.LimitReader(src, f.Size), archive), nil)
	if err == nil && found != f.SHA256 {
		err = &IntegrityError{Path: f.Path, Expected: f.SHA256, Found: found, ExpectedBytes: f.Size, FoundBytes: f.Size}
	}
	return err
}

func bundleHeader(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0).UTC(),
		Format: tar.FormatPAX}
}
