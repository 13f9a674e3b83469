package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"slipway/manifests"
)

// Entry is one file of a revision as the hub's API lists it.
type Entry struct {
	Path   string
	Bytes  int64
	Blob   string           // git blob SHA-1, of the pointer for a large file
	SHA256 manifests.Digest // of a large file; "" for a small one
}

const (
	maxTreePages     = 200
	maxTreeEntries   = 20_000
	maxTreePageBytes = 16 << 20
)

// Tree lists every file of a revision, following pages. What is listed is unproven: nothing ties it to the revision.
// Names that lead out of a folder, and pages that lead to another host or in a circle, are a *HostileError.
func (c *Client) Tree(ctx context.Context, repo string, revision manifests.Revision) ([]Entry, error) {
	entries, err := c.treeFrom(ctx, c.endpoints[0], repo, revision)
	for i := 1; i < len(c.endpoints) && err != nil && ctx.Err() == nil; i++ {
		if more, other := c.treeFrom(ctx, c.endpoints[i], repo, revision); other == nil {
			return more, nil
		}
	}
	return entries, err
}

func treeAddress(endpoint, repo string, revision manifests.Revision) string {
	return endpoint + "/api/models/" + repo + "/tree/" + string(revision) + "?recursive=true"
}

func (c *Client) treeFrom(ctx context.Context, endpoint, repo string, revision manifests.Revision) ([]Entry, error) {
	if err := manifests.ValidateRepo(repo); err != nil {
		return nil, err
	}
	if err := revision.Validate(); err != nil {
		return nil, err
	}
	address := treeAddress(endpoint, repo, revision)
	origin, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	seen := map[string]bool{}
	for pages := 0; address != ""; pages++ {
		if seen[address] || pages >= maxTreePages {
			return nil, &HostileError{"its pages do not end"}
		}
		seen[address] = true
		answer, body, err := c.askHub(ctx, endpoint, address, repo, http.Header{"Accept": {"application/json"}},
			maxTreePageBytes)
		if err != nil {
			return nil, err
		}
		page, err := parseTree(body)
		if err != nil {
			return nil, c.notAHub(address, err.Error())
		}
		if entries = append(entries, page...); len(entries) > maxTreeEntries {
			return nil, &HostileError{fmt.Sprintf("it has more than %d files", maxTreeEntries)}
		}
		if address, err = nextPage(answer.Header, origin); err != nil {
			return nil, err
		}
	}
	return entries, checkPaths(entries)
}

func parseTree(body []byte) ([]Entry, error) {
	var raw []struct {
		Type, Path, OID string
		Size            int64
		LFS             *struct {
			OID  string
			Size int64
		}
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, fmt.Errorf("its list of files is not the JSON of one")
	}
	var entries []Entry
	for _, r := range raw {
		if r.Type != "file" {
			continue
		}
		e := Entry{Path: r.Path, Bytes: r.Size, Blob: r.OID}
		if r.LFS != nil {
			e.Bytes, e.SHA256 = r.LFS.Size, manifests.Digest("sha256:"+r.LFS.OID)
			if err := e.SHA256.Validate(); err != nil {
				return nil, fmt.Errorf("%s has no SHA-256", plain(r.Path))
			}
		}
		if e.Bytes < 0 {
			return nil, fmt.Errorf("%s has a negative size", plain(r.Path))
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// nextPage reads Link: <...>; rel="next". The next page must be on the same host.
func nextPage(h http.Header, origin *url.URL) (string, error) {
	for _, value := range h.Values("Link") {
		for _, link := range strings.Split(value, ",") {
			target, params, ok := strings.Cut(link, ";")
			if !ok || !strings.Contains(strings.ReplaceAll(params, " ", ""), `rel="next"`) {
				continue
			}
			next, err := origin.Parse(strings.Trim(strings.TrimSpace(target), "<>"))
			if err != nil || !sameOrigin(origin, next) {
				return "", &HostileError{"its next page is on another host"}
			}
			return next.String(), nil
		}
	}
	return "", nil
}

// checkPaths refuses names that no lock could hold, by asking the lock's own rules.
func checkPaths(entries []Entry) error {
	lock := manifests.Lock{SchemaVersion: manifests.LockSchemaVersion, Repo: "a/b",
		Revision: manifests.Revision(strings.Repeat("0", 40))}
	zero := manifests.DigestOf([32]byte{})
	for _, e := range entries {
		lock.Files = append(lock.Files, manifests.File{Path: e.Path, SHA256: zero, Proof: manifests.Unproven})
	}
	if len(lock.Files) == 0 {
		return nil
	}
	if _, err := lock.Marshal(); err != nil {
		why := err.Error()
		var refused *manifests.LockError
		if errors.As(err, &refused) {
			why = refused.Why // where in our own lock is not the reader's business
		}
		return &HostileError{plain(why)}
	}
	return nil
}

// compareTree is nil when the hub's list and the lock agree on every file of the lock.
func compareTree(entries []Entry, lock manifests.Lock) error {
	listed := make(map[string]Entry, len(entries))
	for _, e := range entries {
		listed[e.Path] = e
	}
	for _, f := range lock.Files {
		e, ok := listed[f.Path]
		switch {
		case !ok:
			return &UpstreamDiffersError{f.Path, "it has", fmt.Sprintf("%d bytes", f.Size), "there is no such file"}
		case e.Bytes != f.Size:
			return &UpstreamDiffersError{f.Path, "its size is", fmt.Sprint(f.Size), fmt.Sprint(e.Bytes)}
		case e.SHA256 != "" && e.SHA256 != f.SHA256:
			return &UpstreamDiffersError{f.Path, "its hash is", string(f.SHA256), string(e.SHA256)}
		}
	}
	return nil
}
