package record

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"slipway/atomicfile"
)

// Restorer is the name of the copy of this program in the records' folder, there as long as a record is.
const Restorer = "slipway"

// Sum is the SHA-256 of a program's bytes.
type Sum [sha256.Size]byte

func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// SumOf hashes a file.
func SumOf(path string) (Sum, error) {
	file, err := os.Open(path)
	if err != nil {
		return Sum{}, err
	}
	defer file.Close()
	return sumOf(file)
}

func sumOf(from io.Reader) (Sum, error) {
	hash := sha256.New()
	if _, err := io.Copy(hash, from); err != nil {
		return Sum{}, err
	}
	return Sum(hash.Sum(nil)), nil
}

// HasRestorer reports whether the copy is there and may be run: the same bytes, a plain file of this user that no other
// user can write, in a private folder. Anything else there is not run.
func (f Folder) HasRestorer(want Sum) bool {
	root, err := f.open(false)
	if err != nil {
		return false
	}
	defer root.Close()
	return holds(root, Restorer, want)
}

func holds(root *os.Root, name string, want Sum) bool {
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 || info.Mode().Perm()&0o100 == 0 ||
		owner(info) != os.Getuid() {
		return false
	}
	file, err := root.Open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	opened, err := file.Stat()
	if err != nil || !os.SameFile(info, opened) {
		return false
	}
	sum, err := sumOf(file)
	return err == nil && sum == want
}

// PutRestorer makes the copy from program, whose bytes have the sum want. One that is right stays; anything else under
// its name is replaced atomically by a synced file of mode 0700. Errors: *UnsafeError.
func (f Folder) PutRestorer(program string, want Sum) error {
	root, err := f.open(true)
	if err != nil {
		return err
	}
	defer root.Close()
	if holds(root, Restorer, want) {
		return nil
	}
	from, err := os.Open(program)
	if err != nil {
		return err
	}
	defer from.Close()
	temporary := fmt.Sprintf(".%s.%d", Restorer, os.Getpid())
	root.Remove(temporary)
	to, err := root.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	defer root.Remove(temporary)
	hash := sha256.New()
	_, err = io.Copy(to, io.TeeReader(from, hash))
	if err == nil {
		err = to.Sync()
	}
	if closeErr := to.Close(); err == nil {
		err = closeErr
	}
	if err == nil && Sum(hash.Sum(nil)) != want {
		err = fmt.Errorf("%s was replaced while it ran; run the same command again", program)
	}
	if err == nil {
		if info, statErr := root.Lstat(Restorer); statErr == nil && info.IsDir() {
			return &UnsafeError{Path: f.Path(Restorer), Why: "is a folder where slipway keeps its own program",
				Next: "move it away"}
		}
		err = root.Rename(temporary, Restorer)
	}
	if err != nil {
		return err
	}
	return atomicfile.SyncFolder(root, ".")
}
