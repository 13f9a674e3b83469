package launch

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
)

// ToldPath is the file, below the home, in which a server finds what was decided for it, to show it in its monitor.
const ToldPath = "run/launch.json"

// Told is what that file holds: nothing but names, numbers and sentences that anybody at this machine may see.
type Told struct {
	SchemaVersion int            `json:"schema_version"` // 1
	Profile       string         `json:"profile"`
	BudgetBytes   int64          `json:"budget_bytes"` // 0: none was reckoned with
	Limit         string         `json:"limit"`        // the sentence that names the limit that binds and what was given up
	Neighbors     []ToldNeighbor `json:"neighbors"`    // stopped for this server
}

// ToldNeighbor is a server of somebody else's that is stopped while ours runs.
type ToldNeighbor struct {
	Title    string   `json:"title"`
	Port     int      `json:"port"`
	Models   []string `json:"models"`
	Sentence string   `json:"sentence"`
}

// Tell replaces the file. A reader sees the old one or the new one.
func Tell(root *os.Root, t Told) error {
	t.SchemaVersion = 1
	for _, text := range []*string{&t.Profile, &t.Limit} {
		*text = Printable(*text)
	}
	data, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	temporary := path.Join(path.Dir(ToldPath), "."+path.Base(ToldPath)+".new")
	if err := root.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		root.Remove(temporary)
		return err
	}
	return root.Rename(temporary, ToldPath)
}
