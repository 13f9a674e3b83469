package apply

import (
	"path"
	"regexp"
	"strings"

	"slipway/installer/launch"
	"slipway/installer/plan"
)

// FirstAnswerPath is what the model said when set-up had started it, below the home.
const FirstAnswerPath = "state/first-answer.json"

// Working files are what slipway keeps for itself beside what receipts list, and what a killed run leaves of a file
// that it was replacing. Each is known by its whole name. A file of any other name in the same folder was put there by
// somebody else: it is never removed, and it is named.

// ownFolder is a folder and the names that working files have in it. The folder is a pattern too.
type ownFolder struct {
	folder *regexp.Regexp
	names  *regexp.Regexp
	model  bool // belongs to the models, which --keep-models leaves
}

// DraftPath is where the home remembers how many tokens are best drafted at a time on this machine.
const DraftPath = "state/draft.json"

const (
	sha        = `[0-9a-f]{64}`
	nonce      = `[0-9a-f]{12}` // of the model store's temporary names
	neighborID = `[a-z0-9_-]+-[0-9]+-[0-9]+-[0-9]+`
	revision   = `[0-9a-f]{40}`

	normalizeName = `normalize-[0-9a-f]{16}\.json`
)

var ownFolders = []ownFolder{
	own(`\.`, `\.`+regexp.QuoteMeta(plan.MarkerPath)+`\.new`),
	own(`state`, `lock`, `lock-holder\.json`, `\.lock-holder\.json\.new`, `journal\.ndjson`, `journal\.damaged-[0-9]+`,
		`\.?(first-answer|draft)\.json(\.new)?`, `settings\.json`, `\.settings\.json\.new`,
		`settings\.json\.damaged-[0-9]+`, normalizeName, `\.`+normalizeName+`\.new`,
		`\.?origin\.key(\.new)?`),
	own(receiptsDir, `\.?[0-9a-f]{16}\.json\.new`, `[0-9a-f]{16}\.json(\.damaged-[0-9]+)?`),
	own(jobsDir, `[0-9a-f]{12}(\.end)?\.json`, `\.[0-9a-f]{12}(\.end)?\.json\.new`),
	own(`run`, `server\.json`, `\.server\.json\.new`, `server\.json\.damaged-[0-9]+`, `server\.lock`,
		`\.?launch\.json(\.new)?`, `\.?stopped-by\.json(\.new)?`),
	own(`state/neighbors`, `hold-[0-9]+-[0-9]+`, `(lock|watch)-`+neighborID, neighborID+`\.json`, `slipway`,
		`\.slipway-[0-9]+`, `\.(hold-[0-9]+-[0-9]+|`+neighborID+`\.json)\.[0-9]+`),
	own(plan.CachePath, `CACHEDIR\.TAG`, `lock`, `(replies|written-today)(\.new)?`),
	own(plan.CachePath+`/(points|pages)`, `(writing-)?`+sha),
	own(`logs`, logNames(), `apply-[0-9a-f]{12}\.log`, `restored-`+neighborID+`\.log`),
	own(`engines/\.partial-[0-9a-f]{16}`, regexp.QuoteMeta(plan.EngineBinary), `engine\.json`, `\.engine\.json\.new`),
	models(`models/\.partial`, sha+`\.lock`, sha+`(\.`+nonce+`)?\.part(\.json(\.old|\.`+nonce+`\.new)?)?`),
	models(`models/\.quarantine`, sha, sha+`\.json(\.`+nonce+`\.new)?`),
}

func own(folder string, names ...string) ownFolder {
	return ownFolder{folder: whole(folder), names: whole(strings.Join(names, "|"))}
}

func models(folder string, names ...string) ownFolder {
	f := own(folder, names...)
	f.model = true
	return f
}

func whole(pattern string) *regexp.Regexp { return regexp.MustCompile(`^(?:` + pattern + `)$`) }

func logNames() string {
	var names []string
	for _, name := range launch.LogNames() {
		names = append(names, regexp.QuoteMeta(path.Base(name)))
	}
	return strings.Join(names, "|")
}

// besideModel are the names that the model store gives to what it keeps beside models, in models/ORG--NAME.
var besideModel = whole(`(` + revision + `)(\.lock\.json|\.reference\.json|\.installed)`)

// isWorkingFile reports whether a file, below the home, has the name of a working file. keepModels leaves the models'.
func isWorkingFile(name string, keepModels bool) bool {
	dir, base := path.Split(name)
	dir = path.Clean(dir)
	for _, f := range ownFolders {
		if f.folder.MatchString(dir) && f.names.MatchString(base) {
			return !(f.model && keepModels)
		}
	}
	return false
}
