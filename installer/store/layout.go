// Package store keeps models on disk: it installs, verifies, adopts, collects and bundles them.
//
// Everything it touches is below one home, reached only through an os.Root, so that no link planted in it leads out:
//
//	models/ORG--NAME/REVISION/...              the model's files and nothing else, plain and readable by other tools
//	models/ORG--NAME/REVISION.lock.json        the lock that they were checked against
//	models/ORG--NAME/REVISION.installed        one line a file: the identity it had when its hash was right
//	models/.partial/SHA.part, .part.json       what has arrived of a file, and the journal that says which bytes count
//	models/.quarantine/                        files whose hash was wrong, with a report each
//
// A file has its final name only when it is whole and its hash was checked.
package store

import (
	"path"
	"strings"

	"slipway/manifests"
)

// ModelsDir is the folder, relative to the home, below which everything of this package lies.
const ModelsDir = "models"

const (
	partialDir    = ModelsDir + "/.partial"
	quarantineDir = ModelsDir + "/.quarantine"
)

// RepoDir is models/ORG--NAME for a repository ORG/NAME.
func RepoDir(repo string) string {
	return path.Join(ModelsDir, strings.ReplaceAll(repo, "/", "--"))
}

// ModelDir is the folder of a model's files, relative to the home, with slashes.
func ModelDir(repo string, revision manifests.Revision) string {
	return path.Join(RepoDir(repo), string(revision))
}

// LockPath is the path of the lock of an installed model, relative to the home.
func LockPath(repo string, revision manifests.Revision) string {
	return ModelDir(repo, revision) + ".lock.json"
}

func installedPath(repo string, revision manifests.Revision) string {
	return ModelDir(repo, revision) + ".installed"
}

// filePath is a model file's final name, relative to the home. The lock was validated: file is a clean relative path.
func filePath(lock manifests.Lock, file string) string {
	return path.Join(ModelDir(lock.Repo, lock.Revision), file)
}
