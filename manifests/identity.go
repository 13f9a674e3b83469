// Package manifests pins models: which repository, which revision, which files, with which hashes, and the geometry
// that sizing needs. Manifests are TOML files and locks are JSON files, both embedded; Pocket, the small default model,
// is embedded with its weights. The package reads only what is embedded or handed to it.
package manifests

import (
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Revision is a commit: 40 lower-case hexadecimal digits. The empty revision means "not known yet"; a branch name is
// never a revision.
type Revision string

// Validate refuses everything but 40 lower-case hexadecimal digits, the empty revision too.
func (r Revision) Validate() error {
	if len(r) != 40 || !lowerHex(string(r)) {
		return fmt.Errorf("revision %q is not 40 lower-case hexadecimal digits", string(r))
	}
	return nil
}

// Short is the first 12 digits, for sentences.
func (r Revision) Short() string {
	if len(r) < 12 {
		return string(r)
	}
	return string(r[:12])
}

// Digest is a SHA-256 as "sha256:" and 64 lower-case hexadecimal digits. Empty means "not known yet".
type Digest string

const digestPrefix = "sha256:"

// DigestOf writes a SHA-256 sum as a Digest.
func DigestOf(sum [32]byte) Digest { return Digest(digestPrefix + hex.EncodeToString(sum[:])) }

// Validate refuses everything but "sha256:" and 64 lower-case hexadecimal digits, the empty digest too.
func (d Digest) Validate() error {
	digits, ok := strings.CutPrefix(string(d), digestPrefix)
	if !ok || len(digits) != 64 || !lowerHex(digits) {
		return fmt.Errorf("digest %q is not sha256: and 64 lower-case hexadecimal digits", string(d))
	}
	return nil
}

// Hex is the 64 digits alone.
func (d Digest) Hex() string { return strings.TrimPrefix(string(d), digestPrefix) }

func lowerHex(s string) bool {
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Proof says how a file's SHA-256 came to be known.
type Proof string

const (
	Proven   Proof = "proven"   // derived from the revision itself through git objects
	Unproven Proof = "told"     // the hub said so; nothing ties it to the revision
	Embedded Proof = "embedded" // compiled into this program
)

// Validate refuses unknown words.
func (p Proof) Validate() error {
	switch p {
	case Proven, Unproven, Embedded:
		return nil
	}
	return fmt.Errorf("proof %q is none of proven, told, embedded", string(p))
}

// ValidateRepo refuses everything but ORG/NAME with the characters a hub allows.
func ValidateRepo(repo string) error {
	org, name, ok := strings.Cut(repo, "/")
	if !ok || !repoPart(org) || !repoPart(name) {
		return fmt.Errorf("repository %q is not ORG/NAME of letters, digits, '-', '_' and '.'", repo)
	}
	return nil
}

func repoPart(s string) bool {
	if s == "" || len(s) > 96 || s[0] == '.' || s[0] == '-' || s[len(s)-1] == '.' || s[len(s)-1] == '-' ||
		strings.Contains(s, "--") || strings.Contains(s, "..") {
		return false
	}
	for _, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.') {
			return false
		}
	}
	return true
}

// ValidatePath accepts a relative slash path that means the same on every file system we meet and leads out of no
// folder: no empty, "." or ".." element, no backslash, colon or control character, no element that ends in a dot or a
// space, valid UTF-8 in composed form, at most 255 bytes an element and 1,024 in all.
func ValidatePath(p string) error {
	refuse := func(why string) error { return fmt.Errorf("path %q %s", p, why) }
	switch {
	case p == "":
		return refuse("is empty")
	case len(p) > 1024:
		return refuse("is longer than 1,024 bytes")
	case !utf8.ValidString(p):
		return refuse("is not UTF-8")
	case strings.HasPrefix(p, "/"):
		return refuse("is absolute")
	case strings.ContainsRune(p, '\\'):
		return refuse("has a backslash")
	case strings.ContainsRune(p, 0):
		return refuse("has a NUL")
	case strings.ContainsRune(p, ':'):
		return refuse("has a colon")
	}
	for _, c := range p {
		if unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || c == unicode.ReplacementChar {
			return refuse("has a control character, a line separator or an invisible character")
		}
	}
	for _, element := range strings.Split(p, "/") {
		switch {
		case element == "..":
			return refuse("climbs with ..")
		case element == "" || element == ".":
			return refuse("has an empty or . element")
		case len(element) > 255:
			return refuse("has an element longer than 255 bytes")
		case strings.HasSuffix(element, ".") || strings.HasSuffix(element, " ") || strings.HasPrefix(element, " "):
			return refuse("has an element that begins with a space or ends with a space or a dot")
		case strings.EqualFold(element, ".git") || strings.EqualFold(element, ".slipway-home"):
			return refuse("has a reserved element")
		}
	}
	if path.Clean(p) != p {
		return refuse("is not in its shortest form")
	}
	if !norm.NFC.IsNormalString(p) {
		return refuse("is not in composed Unicode form (NFC)")
	}
	return nil
}

// foldPath is the form under which two paths are one file on a case-insensitive, normalising file system (APFS).
func foldPath(p string) string { return norm.NFC.String(cases.Fold().String(p)) }
