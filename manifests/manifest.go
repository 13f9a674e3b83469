package manifests

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"slipway/profiles"
	"slipway/profiles/strict"
)

// ManifestSchemaVersion is the version of the TOML files.
const ManifestSchemaVersion = 1

// Geometry and DraftGeometry are what sizing needs of a model; profiles owns the formulas.
type (
	Geometry      = profiles.Geometry
	DraftGeometry = profiles.DraftGeometry
)

// License is what the repository says of itself; it is shown before a download.
type License struct {
	SPDX string `toml:"spdx" json:"spdx"`
	URL  string `toml:"url" json:"url,omitempty"`
}

// Quirk is something a person or the program must know about this model; ID is stable, Text is a sentence.
type Quirk struct {
	ID   string `toml:"id" json:"id"`
	Text string `toml:"text" json:"text"`
}

// Draft is a draft that goes with a model and does not come with its files: a model of its own ("dflash2"), or the head
// that the model's pack has dropped ("mtp"), whose tensors are cut out of the original's shards.
type Draft struct {
	Kind          string        `toml:"kind" json:"kind"`
	Repo          string        `toml:"repo" json:"repo"`
	Revision      Revision      `toml:"revision" json:"revision"`
	Include       []string      `toml:"include" json:"include"`
	DownloadBytes int64         `toml:"download_bytes" json:"download_bytes"` // about; the lock is exact; 0: not known
	License       License       `toml:"license" json:"license"`
	Geometry      DraftGeometry `toml:"geometry" json:"geometry,omitzero"` // of a model of its own

	// Of a head: the prefix of its tensors, and the SHA-256 of their bytes in the order of their names, where it is
	// known. The revision proves whole shards only, so that nothing else proves a part of one.
	Tensors string `toml:"tensors" json:"tensors,omitempty"`
	SHA256  Digest `toml:"sha256" json:"sha256,omitempty"`
}

// Manifest pins one model.
//
// Revision is empty until it is known (`slipway models lock` fills it): such a model can be planned and sized, not
// installed. Include are globs of path.Match over a file's whole path, so "*" does not cross "/". DownloadBytes is
// about; the lock is exact.
type Manifest struct {
	SchemaVersion int      `toml:"schema_version" json:"schema_version"`
	ID            string   `toml:"id" json:"id"`
	Title         string   `toml:"title" json:"title"`
	Repo          string   `toml:"repo" json:"repo"`
	Revision      Revision `toml:"revision" json:"revision"`
	Embedded      bool     `toml:"embedded" json:"embedded"` // the files are inside this program (Pocket)
	Include       []string `toml:"include" json:"include"`
	DownloadBytes int64    `toml:"download_bytes" json:"download_bytes"`
	License       License  `toml:"license" json:"license"`
	Geometry      Geometry `toml:"geometry" json:"geometry"`
	Draft         *Draft   `toml:"draft" json:"draft,omitempty"`
	Quirks        []Quirk  `toml:"quirks" json:"quirks,omitempty"`
}

// Pinned says whether everything has a revision, so that it can be fetched.
func (m Manifest) Pinned() bool {
	return m.Revision != "" && (m.Draft == nil || m.Draft.Revision != "")
}

// Wants says whether a path of the repository belongs to the model.
func (m Manifest) Wants(p string) bool { return matchesAny(m.Include, p) }

// Wants says whether a path of the draft's repository belongs to the draft.
func (d Draft) Wants(p string) bool { return matchesAny(d.Include, p) }

// CeilingBytes is the most that the wanted files may have together: a sixteenth more than DownloadBytes, which is
// rounded where it has no exact source.
func (m Manifest) CeilingBytes() int64 { return m.DownloadBytes + m.DownloadBytes/16 }

// Candidate is the manifest as sizing and proposing see it.
func (m Manifest) Candidate() profiles.Candidate {
	c := profiles.Candidate{ID: m.ID, Title: m.Title, Geometry: m.Geometry, DownloadBytes: m.DownloadBytes,
		Embedded: m.Embedded}
	if m.Draft != nil && m.Draft.Tensors == "" {
		c.DFlash2, c.DraftDownloadBytes = &m.Draft.Geometry, m.Draft.DownloadBytes
	}
	return c
}

// DraftFiles is the draft as a manifest of its own, for all that fetches and proves files; false: there is none, or its
// files are among the model's.
func (m Manifest) DraftFiles() (Manifest, bool) {
	d := m.Draft
	if d == nil || d.Repo == m.Repo {
		return Manifest{}, false
	}
	title := "its " + d.Kind + " draft"
	if d.Tensors != "" {
		title = "its MTP head"
	}
	return Manifest{ID: m.ID + "-" + d.Kind, Title: title, Repo: d.Repo, Revision: d.Revision,
		Include: d.Include, DownloadBytes: d.DownloadBytes, License: d.License}, true
}

func matchesAny(globs []string, p string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		ok, _ := path.Match(glob, p)
		return ok
	})
}

var idForm = regexp.MustCompile(`^[a-z0-9]+([.-][a-z0-9]+)*$`)

// ParseManifest reads one TOML file strictly; name is used in messages and must be ID.toml. Errors are *strict.Error.
func ParseManifest(name string, data []byte) (Manifest, error) {
	var m Manifest
	if err := strict.Decode(name, data, &m); err != nil {
		return Manifest{}, err
	}
	if key, why := m.fault(); why != "" {
		return Manifest{}, strict.At(name, data, key, why)
	}
	if path.Base(name) != m.ID+".toml" {
		return Manifest{}, strict.At(name, data, "id", "is "+m.ID+": the file must be named "+m.ID+".toml")
	}
	return m, nil
}

// fault returns the first wrong key and why; why is empty when all is well.
func (m Manifest) fault() (key, why string) {
	switch {
	case m.SchemaVersion != ManifestSchemaVersion:
		return "schema_version", "must be 1"
	case !idForm.MatchString(m.ID):
		return "id", "must be lower-case letters and digits joined by '-' or '.'"
	case m.Title == "":
		return "title", "is missing"
	case m.DownloadBytes < 0:
		return "download_bytes", "is negative"
	case m.License.SPDX == "":
		return "license.spdx", "is missing"
	}
	if err := ValidateRepo(m.Repo); err != nil {
		return "repo", err.Error()
	}
	if key, why := revisionFault("revision", m.Revision); why != "" {
		return key, why
	}
	if key, why := includeFault("include", m.Include); why != "" {
		return key, why
	}
	if err := m.Geometry.Validate(); err != nil {
		return geometryKey("geometry", err)
	}
	for _, q := range m.Quirks {
		if !idForm.MatchString(q.ID) || q.Text == "" {
			return "quirks", "each needs an id of lower-case letters, digits and '-', and a text"
		}
	}
	if m.Draft == nil {
		return "", ""
	}
	d := *m.Draft
	head := profiles.DraftKind(d.Kind) == profiles.MTP
	switch {
	case !head && profiles.DraftKind(d.Kind) != profiles.DFlash2:
		return "draft.kind", "must be dflash2 or mtp"
	case head != (d.Tensors != ""):
		return "draft.tensors", "is the prefix of a head's tensors, which an mtp draft needs and no other has"
	case head && m.Geometry.MTPLayers != 1:
		return "geometry.mtp_layers", "must be 1 where the draft is a head of one layer"
	case d.SHA256 != "" && (!head || d.SHA256.Validate() != nil):
		return "draft.sha256", "is sha256: and 64 hexadecimal digits, of a head's tensors"
	case d.DownloadBytes < 0:
		return "draft.download_bytes", "is negative"
	case d.License.SPDX == "":
		return "draft.license.spdx", "is missing"
	}
	if err := ValidateRepo(d.Repo); err != nil {
		return "draft.repo", err.Error()
	}
	if key, why := revisionFault("draft.revision", d.Revision); why != "" {
		return key, why
	}
	if key, why := includeFault("draft.include", d.Include); why != "" {
		return key, why
	}
	if err := d.Geometry.Validate(); err != nil && !head {
		return geometryKey("draft.geometry", err)
	}
	return "", ""
}

func revisionFault(key string, r Revision) (string, string) {
	if r == "" {
		return "", ""
	}
	if err := r.Validate(); err != nil {
		return key, err.Error() + "; leave it empty when it is not known"
	}
	return "", ""
}

func includeFault(key string, globs []string) (string, string) {
	if len(globs) == 0 {
		return key, "is empty: no file is wanted"
	}
	for _, glob := range globs {
		if _, err := path.Match(glob, ""); err != nil || strings.HasPrefix(glob, "/") || strings.Contains(glob, "..") ||
			strings.Contains(glob, `\`) {
			return key, "has " + glob + ", which is no glob over relative slash paths"
		}
	}
	return "", ""
}

// geometryKey turns "geometry: kv_heads is 0, ..." into its key and the rest.
func geometryKey(table string, err error) (string, string) {
	_, text, _ := strings.Cut(err.Error(), ": ")
	field, _, _ := strings.Cut(text, " ")
	return table + "." + field, text
}
