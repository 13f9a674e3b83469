package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway/installer/launch"
	"slipway/installer/plan"
	"slipway/installer/store"
	"slipway/manifests"
)

// Removal is what uninstall will do or did. Paths are below the home.
type Removal struct {
	Files   []string `json:"files"`
	Folders []string `json:"folders"`
	Left    []Left   `json:"left"`  // what stays, and why
	Home    bool     `json:"home"`  // the home itself goes, because it was made by slipway and nothing stays
	Notes   []string `json:"notes"` // what the removal means for other programs, in sentences
}

// Left is something that stays.
type Left struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// PlanRemoval lists what the receipts and an open journal say was made, file by file: a file whose bytes are no longer
// those of the receipt stays and is named. keepModels leaves the models. It writes nothing.
func PlanRemoval(ctx context.Context, home *Home, keepModels bool) (Removal, error) {
	items, err := listedItems(home)
	if err != nil {
		return Removal{}, err
	}
	r := Removal{Files: []string{}, Folders: []string{}, Left: []Left{}, Notes: []string{}}
	var made []string // folders that actions make
	folders := slices.Clone(plan.Folders)
	folders = append(folders, receiptsDir, jobsDir, "state/neighbors", plan.CachePath, plan.CachePath+"/points",
		plan.CachePath+"/pages")
	for _, item := range items {
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		if item.Path == "." || item.Path == plan.MarkerPath || !filepath.IsLocal(item.Path) {
			continue
		}
		if keepModels && strings.HasPrefix(item.Path, "models/") {
			continue
		}
		switch item.Kind {
		case FolderItem:
			if info, err := home.Root.Lstat(item.Path); err == nil && info.IsDir() {
				folders, made = append(folders, item.Path), append(made, item.Path)
			}
		case FileItem:
			r.considerFile(home, item)
		}
	}
	folders = append(folders, r.addProven(home, made)...)
	if !keepModels {
		folders = append(folders, r.addLocks(home)...)
	}
	r.addWorkingFiles(ctx, home, folders, keepModels)
	r.addFolders(home, folders, keepModels)
	r.Home = len(r.Left) == 0 && home.Marker.MadeHome && !keepModels
	return r, nil
}

// listedItems joins all receipts and what an open journal announced.
func listedItems(home *Home) ([]Item, error) {
	receipts, err := home.Receipts()
	if err != nil {
		return nil, err
	}
	var items []Item
	seen := map[Item]bool{}
	add := func(list []Item) {
		for _, item := range list {
			if !seen[item] {
				seen[item] = true
				items = append(items, item)
			}
		}
	}
	for _, r := range receipts {
		for _, done := range r.Actions {
			add(done.Items)
		}
	}
	records, _, err := readJournal(home)
	if err != nil {
		return nil, err
	}
	for _, rec := range records {
		add(settledItems(rec.Paths))
		add(rec.Items)
	}
	return items, nil
}

func (r *Removal) considerFile(home *Home, item Item) {
	info, err := home.Root.Lstat(item.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		r.leave(item.Path, "cannot be looked at: "+reason(err))
		return
	case !info.Mode().IsRegular():
		r.leave(item.Path, "is no longer a plain file")
		return
	}
	if item.SHA256 != "" {
		found, _, err := hashIn(home.Root, item.Path)
		if err != nil {
			r.leave(item.Path, "cannot be read: "+reason(err))
			return
		}
		if string(found) != item.SHA256 {
			r.leave(item.Path, "was changed since slipway made it")
			return
		}
	}
	r.Files = appendOnce(r.Files, item.Path)
}

func (r *Removal) leave(name, why string) {
	for _, l := range r.Left {
		if l.Path == name {
			return
		}
	}
	r.Left = append(r.Left, Left{name, why})
}

// addLocks adds the locks that `slipway models lock` left, also of models that were never set up, and returns the
// folders that they lie in. A file that is no lock of ours stays.
func (r *Removal) addLocks(home *Home) []string {
	var folders []string
	repos, err := readNames(home.Root, store.ModelsDir)
	if err != nil {
		return nil
	}
	for _, repo := range repos {
		folder := path.Join(store.ModelsDir, repo)
		names, err := readNames(home.Root, folder)
		if err != nil {
			continue
		}
		for _, name := range names {
			data, err := home.Root.ReadFile(path.Join(folder, name))
			if err != nil || !strings.HasSuffix(name, ".lock.json") {
				continue
			}
			if lock, err := manifests.ParseLock(data); err == nil && store.LockPath(lock.Repo,
				lock.Revision) == path.Join(folder, name) {
				r.Files = appendOnce(r.Files, path.Join(folder, name))
				if info, err := home.Root.Lstat(store.ReferencePath(lock)); err == nil && info.Mode().IsRegular() {
					// ours; the folder that it names is the user's
					r.Files = appendOnce(r.Files, store.ReferencePath(lock))
				}
				folders = appendOnce(folders, folder)
			}
		}
	}
	return folders
}

// restoredLog is the output of a foreign server that slipway started again. It is that server's while it runs.
var restoredLog = whole(`logs/restored-` + neighborID + `\.log`)

// addWorkingFiles adds the working files in our folders, and what the model store keeps beside models that are removed.
func (r *Removal) addWorkingFiles(ctx context.Context, home *Home, folders []string, keepModels bool) {
	listed := map[string]bool{} // a cache has thousands of files
	for _, name := range r.Files {
		listed[name] = true
	}
	beside := map[string]bool{}
	for _, folder := range folders {
		if strings.HasPrefix(folder, "models/") {
			beside[folder] = true
		}
	}
	for _, dir := range append([]string{"."}, ourFolders(folders)...) {
		names, err := readNames(home.Root, dir)
		if err != nil {
			continue
		}
		for _, name := range names {
			full := path.Join(dir, name)
			if full == holderPath {
				continue // there while a process holds the lock, which uninstall itself does: not counted
			}
			ours := isWorkingFile(full, keepModels)
			if !keepModels && path.Dir(dir) == store.ModelsDir {
				model := besideModel.FindStringSubmatch(name)
				ours = ours || store.IsTemporary(full) || model != nil && beside[path.Join(dir, model[1])]
			}
			if !ours {
				continue
			}
			info, err := home.Root.Lstat(full)
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			if restoredLog.MatchString(full) {
				if pids := launch.Users(ctx, filepath.Join(home.Path, filepath.FromSlash(full)), info); len(pids) > 0 {
					r.Notes = append(r.Notes, fmt.Sprintf("The server with pid %d, which slipway started again, "+
						"writes its output to %s. That file is removed, and what the server writes from then on "+
						"is lost.", pids[0], full))
				}
			}
			if !listed[full] {
				listed[full] = true
				r.Files = append(r.Files, full)
			}
		}
	}
}

// ourFolders adds to the listed folders those that working files lie in, each once.
func ourFolders(folders []string) []string {
	all := append(slices.Clone(folders), "models/.partial", "models/.quarantine")
	for _, folder := range folders {
		if strings.HasPrefix(folder, "engines/") {
			all = append(all, "engines/.partial-"+path.Base(folder))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// addFolders adds the folders that will be empty, deepest first, and names what keeps the others.
func (r *Removal) addFolders(home *Home, folders []string, keepModels bool) {
	gone := map[string]bool{holderPath: true}
	for _, f := range r.Files {
		gone[f] = true
	}
	all := ourFolders(folders)
	slices.SortFunc(all, func(a, b string) int {
		if d := strings.Count(b, "/") - strings.Count(a, "/"); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, folder := range all {
		if keepModels && (folder == "models" || strings.HasPrefix(folder, "models/")) {
			continue
		}
		names, err := readNames(home.Root, folder)
		if err != nil {
			continue
		}
		empty := true
		for _, name := range names {
			if full := path.Join(folder, name); !gone[full] {
				empty = false
				r.leave(full, "was not made by slipway")
			}
		}
		if empty {
			gone[folder] = true
			r.Folders = appendOnce(r.Folders, folder)
		}
	}
	names, err := readNames(home.Root, ".")
	if err != nil {
		return
	}
	for _, name := range names {
		if !gone[name] && name != plan.MarkerPath && !(keepModels && name == "models") && !r.holdsLeft(name) {
			why := "was not made by slipway"
			if name == "checks" {
				why = "holds the answers that slipway check kept; they are yours to remove"
			}
			r.leave(name, why)
		}
	}
	// A folder that stays only because of what is left in it is not a left-over of its own.
	r.Left = slices.DeleteFunc(r.Left, func(l Left) bool { return r.holdsLeft(l.Path) })
}

// holdsLeft reports whether something below this name is left.
func (r *Removal) holdsLeft(name string) bool {
	return slices.ContainsFunc(r.Left, func(l Left) bool { return strings.HasPrefix(l.Path, name+"/") })
}

func appendOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
