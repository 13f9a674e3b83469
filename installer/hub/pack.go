package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"slipway/manifests"
)

// maxPackBytes bounds a pack: a model repository's small files and pointers are a few tens of megabytes at most.
const maxPackBytes = 256 << 20

// GitError: the hub's git side did not bring the commit. Answered is false when not one answer came: then it is not the
// git side that fails but the way to it.
type GitError struct {
	Err      error
	Answered bool
	Tries    int
}

func (e *GitError) Error() string {
	return "it did not give out the git objects of the revision: " + e.Err.Error()
}
func (e *GitError) Unwrap() error { return e.Err }

// Pack brings the git pack of exactly one commit at depth 1: the commit, its trees, its blobs, nothing older. One want
// a request. Nothing is checked here. *AccessError, *GitError or the context's error. Where no answer came the last of
// the tries is left for Reach.
func (c *Client) Pack(ctx context.Context, repo string, revision manifests.Revision) ([]byte, error) {
	if err := manifests.ValidateRepo(repo); err != nil {
		return nil, err
	}
	if err := revision.Validate(); err != nil {
		return nil, err
	}
	if c.config.Offline {
		return nil, &NetworkError{URL: redactURL(c.endpoints[0]), Err: ErrOffline}
	}
	answered := false
	for try := 1; ; try++ {
		pack, came, err := c.packOnce(ctx, c.endpoints[0], repo, revision)
		answered = answered || came
		if err == nil {
			return pack, nil
		}
		var access *AccessError
		var hostile *HostileError
		var way *WayError
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.As(err, &access) || errors.As(err, &hostile) || errors.As(err, &way) {
			return nil, err
		}
		tries := triesAt(err)
		if try >= tries || errors.Is(err, errNoSuchCommit) || errors.Is(err, errNoGitSide) ||
			errors.Is(err, errNotGit) {
			return nil, &GitError{err, answered, try}
		}
		if err := c.waitToRetry(ctx, try, tries, err); err != nil {
			return nil, err
		}
		if !answered && try == tries-1 {
			return nil, &GitError{err, answered, try}
		}
	}
}

var (
	errNoSuchCommit = errors.New("it does not know this revision")
	errNoGitSide    = errors.New("it has none (status 404)")
	errNotGit       = errors.New("what it answers is not git")
)

// packOnce asks once. answered: some answer came, whatever it said.
func (c *Client) packOnce(ctx context.Context, endpoint, repo string, revision manifests.Revision) (pack []byte,
	answered bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := newStallWatch(2*c.config.StallTimeout, cancel)
	defer watch.stop()
	over := &gitTransport{client: c, endpoint: endpoint, repo: repo, watch: watch}
	defer func() { answered = over.status != 0 }()
	client := githttp.NewClientWithOptions(&http.Client{Transport: over},
		&githttp.ClientOptions{RedirectPolicy: githttp.NoFollowRedirects})
	at, err := transport.NewEndpoint(endpoint + "/" + repo)
	if err != nil {
		return nil, false, errors.New("the address does not parse")
	}
	session, err := client.NewUploadPackSession(at, nil)
	if err != nil {
		return nil, false, err
	}
	defer session.Close()
	explain := func(err error) error {
		switch {
		case over.refused != nil:
			return over.refused
		case over.unanswered != nil && !watch.fired.Load():
			return over.unanswered
		case errors.Is(err, pktline.ErrInvalidPktLen):
			return errNotGit
		}
		if over.status == http.StatusNotFound {
			return errNoGitSide
		}
		if over.status != 0 && over.status != http.StatusOK {
			// go-git's own error carries the body, which may be a whole page
			return &AnswerError{over.status, "the hub's git side failed"}
		}
		return errors.New(plain(bare(watch.explain(err)).Error()))
	}
	if _, err := session.AdvertisedReferencesContext(ctx); err != nil {
		return nil, false, explain(err)
	}
	request := packp.NewUploadPackRequest()
	request.Wants = []plumbing.Hash{plumbing.NewHash(string(revision))}
	request.Depth = packp.DepthCommits(1)
	if err := request.Capabilities.Set("shallow"); err != nil {
		return nil, false, err
	}
	if err := request.Capabilities.Set("ofs-delta"); err != nil {
		return nil, false, err
	}
	answer, err := session.UploadPack(ctx, request)
	if err != nil {
		if over.refused == nil && over.status == http.StatusOK && over.posted {
			return nil, false, fmt.Errorf("%w: %s", errNoSuchCommit, plain(err.Error()))
		}
		return nil, false, explain(err)
	}
	defer answer.Close()
	pack, err = io.ReadAll(watch.reader(io.LimitReader(answer, maxPackBytes+1)))
	if err != nil {
		return nil, false, explain(err)
	}
	if len(pack) > maxPackBytes {
		return nil, false, &HostileError{fmt.Sprintf("its git pack is larger than %d bytes", maxPackBytes)}
	}
	return pack, true, nil
}

// gitTransport sends git's requests by the client's own rules: the token only to its origin, a stale one dropped.
type gitTransport struct {
	client         *Client
	endpoint, repo string
	watch          *stallWatch
	refused        error
	unanswered     error // why no answer came
	status         int   // of the last answer; 0: none came
	posted         bool  // it answered the upload-pack request
}

// lacking distinguishes a mirror that has no git side from one that refuses.
func (g *gitTransport) lacking(answer *http.Response) bool {
	return answer.StatusCode == http.StatusNotFound && !g.client.fromOrigin(g.endpoint)
}

// leaves reports whether a redirect leads to another host: a git side has no reason to, a network's sign-in page does.
func (g *gitTransport) leaves(answer *http.Response) bool {
	next, err := answer.Location()
	return err == nil && next.Host != answer.Request.URL.Host
}

func (g *gitTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		request := r.Clone(r.Context())
		if r.GetBody != nil {
			body, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			request.Body = body
		}
		request.Header.Set("User-Agent", g.client.config.UserAgent)
		g.client.authorize(request)
		answer, err := g.client.http.Transport.RoundTrip(request)
		if err != nil {
			if r.Context().Err() == nil {
				g.refused = g.client.obstacle(err, request.URL)
				g.unanswered = g.client.noAnswer(err, request.URL)
				err = g.unanswered
			}
			return nil, err
		}
		g.watch.alive()
		answer.Request = request
		if way := g.client.obstacleIn(answer); way != nil {
			answer.Body.Close()
			g.refused = way
			return nil, way
		}
		if g.client.dropToken(answer, g.endpoint, g.repo) {
			answer.Body.Close()
			continue
		}
		if refused := g.client.firstOr(g.client.refusal(answer, g.endpoint, g.repo, g.repo)); refused != nil &&
			!g.lacking(answer) {
			g.refused = refused
		}
		if isRedirect(answer.StatusCode) && g.leaves(answer) {
			answer.Body.Close()
			g.refused = &WayError{Host: request.URL.Host, Kind: WebPage}
			return nil, g.refused
		}
		g.status, g.posted = answer.StatusCode, r.Method == http.MethodPost
		answer.Request = r
		return answer, nil
	}
}
