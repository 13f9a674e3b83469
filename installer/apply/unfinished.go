package apply

import (
	"encoding/json"
	"path"

	"slipway/installer/plan"
	"slipway/installer/store"
	"slipway/manifests"
)

// An action that was interrupted has no list of what it made. What has its final name is ours where its bytes
// prove it.

// provenIn lists such files in a folder of a model or of an engine, and the folders between.
func provenIn(home *Home, folder string) (files, folders []string) {
	if path.Dir(folder) == "engines" {
		return provenEngine(home, path.Base(folder)), nil
	}
	at, ok := store.RootOf(folder, "")
	if !ok {
		return nil, nil
	}
	lock, err := store.LoadLock(home.Root, at.Repo, at.Revision)
	if err != nil {
		if lock, ok = manifests.BundledLock(at.Repo, at.Revision); !ok {
			return nil, nil
		}
	}
	for _, f := range lock.Files {
		name := path.Join(folder, f.Path)
		for between := path.Dir(name); between != folder; between = path.Dir(between) {
			folders = appendOnce(folders, between)
		}
		if info, err := home.Root.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Size() != f.Size {
			continue
		}
		if found, _, err := hashIn(home.Root, name); err == nil && found == f.SHA256 {
			files = append(files, name)
		}
	}
	return files, folders
}

// provenEngine lists an engine's program, if it is the one that its record names, and the record.
func provenEngine(home *Home, id string) (files []string) {
	if _, err := EngineOf(home, id); err == nil {
		files = append(files, plan.EnginePath(id))
	}
	record := path.Join("engines", id, engineRecordName)
	data, err := home.Root.ReadFile(record)
	var r EngineRecord
	if err == nil && json.Unmarshal(data, &r) == nil && r.ID == id {
		files = append(files, record)
	}
	return files
}

// addProven adds what an interrupted action left in its folders, and returns the folders between. Where a receipt lists
// files of a folder it lists all of them, and they were judged before.
func (r *Removal) addProven(home *Home, folders []string) (between []string) {
	judged := map[string]bool{}
	for _, name := range r.Files {
		judged[path.Dir(name)] = true
	}
	for _, l := range r.Left {
		judged[path.Dir(l.Path)] = true
	}
	for _, folder := range folders {
		if judged[folder] {
			continue
		}
		judged[folder] = true
		files, more := provenIn(home, folder)
		r.Files, between = append(r.Files, files...), append(between, more...)
	}
	return between
}
