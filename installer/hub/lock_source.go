package hub

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"slipway/manifests"
)

// maxSmallBytes: hubs keep larger files in LFS.
const maxSmallBytes = 64 << 20

// List is the tree as files that the hub lists; SHA256 is "" for small ones.
func (c *Client) List(ctx context.Context, repo string, revision manifests.Revision) ([]manifests.File, error) {
	entries, err := c.Tree(ctx, repo, revision)
	if err != nil {
		return nil, err
	}
	files := make([]manifests.File, 0, len(entries))
	for _, e := range entries {
		files = append(files, manifests.File{Path: e.Path, Size: e.Bytes, SHA256: e.SHA256, Proof: manifests.Unproven})
	}
	return files, nil
}

// Small brings a small file whole. Nothing of it is checked here.
func (c *Client) Small(ctx context.Context, repo string, revision manifests.Revision, file string) ([]byte, error) {
	if err := manifests.ValidatePath(file); err != nil {
		return nil, &HostileError{plain(err.Error())}
	}
	_, body, err := c.askHub(ctx, c.endpoints[0], resolveURL(c.endpoints[0], repo, revision, file), repo, http.Header{},
		maxSmallBytes)
	return body, err
}

// Unreachable reports whether the git side could not be reached or does not give out the commit, as opposed to a
// refusal of this user or an answer that no honest hub gives.
func (c *Client) Unreachable(err error) bool {
	var git *GitError
	return errors.As(err, &git)
}

// Silent reports whether not one answer of the git side came.
func (c *Client) Silent(err error) bool {
	var git *GitError
	return errors.As(err, &git) && !git.Answered
}

// Reach asks the hub's API once, after its git side failed with an error of Pack. nil: it answers, and lists the
// files of this revision. Errors: *WayError, *AccessError, *NotAHubError, *NetworkError.
func (c *Client) Reach(ctx context.Context, repo string, revision manifests.Revision, failed error) error {
	endpoint, tries := c.endpoints[0], 1
	if git, ok := errors.AsType[*GitError](failed); ok {
		tries = git.Tries
		if !git.Answered {
			tries++ // Pack has left one
		}
	}
	address := treeAddress(endpoint, repo, revision)
	answer, body, err := c.askOnce(ctx, address, http.Header{"Accept": {"application/json"}}, maxTreePageBytes)
	failure := func(err error) error {
		return &NetworkError{URL: redactURL(address), Attempts: tries, Err: bareNetwork(err)}
	}
	var way *WayError
	switch {
	case errors.As(err, &way):
		return way
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return failure(err)
	}
	if way := c.obstacleIn(answer); way != nil {
		return way
	}
	switch {
	case answer.StatusCode == http.StatusNotFound && c.Mirror() && answer.Header.Get("X-Error-Code") != "":
		return nil // a hub, without this model or revision
	case answer.StatusCode == http.StatusNotFound && c.Mirror():
		return c.notAHub(endpoint, "it says that there is no "+repo+" (status 404)")
	case answer.StatusCode == http.StatusOK:
		if _, err := parseTree(body); err != nil {
			return c.notAHub(address, err.Error())
		}
		return nil
	}
	if refused := c.firstOr(c.refusal(answer, endpoint, repo, repo)); refused != nil {
		return refused
	}
	return failure(&AnswerError{answer.StatusCode, "its API failed"})
}

// Mirror reports whether the client asks another host than the manifest's own hub.
func (c *Client) Mirror() bool { return !c.fromOrigin(c.endpoints[0]) }

// Name is the host that is asked.
func (c *Client) Name() string {
	u, err := url.Parse(c.endpoints[0])
	if err != nil {
		return "the hub"
	}
	return u.Host
}
