package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"slipway/manifests"
)

// An installed line says that a file of this identity had this hash. Lines are only appended, before the file gets its
// final name; the last line of a path counts; a torn last line is ignored.
type installedLine struct {
	Path   string           `json:"path"`
	SHA256 manifests.Digest `json:"sha256"`
	Identity
}

// appendInstalled makes lines durable. It starts a fresh line if the file ends in a torn one.
func appendInstalled(home *os.Root, lock manifests.Lock, lines ...installedLine) error {
	if len(lines) == 0 {
		return nil
	}
	name := installedPath(lock.Repo, lock.Revision)
	f, err := home.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	var out bytes.Buffer
	if info, err := f.Stat(); err == nil && info.Size() > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], info.Size()-1); err == nil && last[0] != '\n' {
			out.WriteByte('\n')
		}
	}
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for _, line := range lines {
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	if _, err := f.Write(out.Bytes()); err != nil {
		return spaceError(err, name)
	}
	return f.Sync()
}

// readInstalled returns the last line of each path. A missing file is an empty one; lines that do not parse are
// skipped: the price is one more hash, never a wrong answer.
func readInstalled(home *os.Root, lock manifests.Lock) (map[string]installedLine, error) {
	data, err := home.ReadFile(installedPath(lock.Repo, lock.Revision))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	known := map[string]installedLine{}
	for _, raw := range bytes.Split(data, []byte("\n")) {
		var line installedLine
		if json.Unmarshal(raw, &line) == nil && line.Path != "" {
			known[line.Path] = line
		}
	}
	return known, nil
}
