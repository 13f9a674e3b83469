package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"slipway/manifests"
)

// MaxPackBytes bounds a pack: a model repository's small files and pointers are a few tens of megabytes at most.
const MaxPackBytes = 256 << 20

// GitError: the hub's git side did not bring the commit.
type GitError struct{ Err error }

func (e *GitError) Error() string {
	return "the hub's git side did not bring the commit: " + e.Err.Error()
}
func (e *GitError) Unwrap() error { return e.Err }

// Pack brings the git pack of exactly one commit at depth 1: the commit, its trees, its blobs, nothing older. One want a
// request. Nothing is checked here. *AccessError, *GitError or the context's error.
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
	var last error
	for try := 1; try <= maxTries; try++ {
		pack, err := c.packOnce(ctx, c.endpoints[0], repo, revision)
		if err == nil {
			return pack, nil
		}
		var access *AccessError
		var hostile *HostileError
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.As(err, &access) || errors.As(err, &hostile) {
			return nil, err
		}
		last = err
		if errors.Is(err, errNoSuchCommit) {
			break
		}
		if try < maxTries {
			if err := c.config.Sleep(ctx, c.backoff(try)); err != nil {
				return nil, err
			}
		}
	}
	return nil, &GitError{last}
}

var errNoSuchCommit = errors.New("it does not give out this commit")

func (c *Client) packOnce(ctx context.Context, endpoint, repo string, revision manifests.Revision) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := newStallWatch(2*c.config.StallTimeout, cancel)
	defer watch.stop()
	over := &gitTransport{client: c, endpoint: endpoint, repo: repo, watch: watch}
	client := githttp.NewClientWithOptions(&http.Client{Transport: over}, &githttp.ClientOptions{RedirectPolicy: githttp.NoFollowRedirects})
	at, err := transport.NewEndpoint(endpoint + "/" + repo)
	if err != nil {
		return nil, errors.New("the address does not parse")
	}
	session, err := client.NewUploadPackSession(at, nil)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	explain := func(err error) error {
		if over.refused != nil {
			return over.refused
		}
		return errors.New(redactText(bare(watch.explain(err)).Error()))
	}
	if _, err := session.AdvertisedReferencesContext(ctx); err != nil {
		return nil, explain(err)
	}
	request := packp.NewUploadPackRequest()
	request.Wants = []plumbing.Hash{plumbing.NewHash(string(revision))}
	request.Depth = packp.DepthCommits(1)
	if err := request.Capabilities.Set("shallow"); err != nil {
		return nil, err
	}
	if err := request.Capabilities.Set("ofs-delta"); err != nil {
		return nil, err
	}
	answer, err := session.UploadPack(ctx, request)
	if err != nil {
		if over.refused == nil && over.answered {
			return nil, fmt.Errorf("%w: %s", errNoSuchCommit, plain(err.Error()))
		}
		return nil, explain(err)
	}
	defer answer.Close()
	pack, err := io.ReadAll(watch.reader(io.LimitReader(answer, MaxPackBytes+1)))
	if err != nil {
		return nil, explain(err)
	}
	if len(pack) > MaxPackBytes {
		return nil, &HostileError{fmt.Sprintf("its git pack is larger than %d bytes", MaxPackBytes)}
	}
	return pack, nil
}

// gitTransport sends git's requests by the client's own rules: the token only to its origin, a stale one dropped.
type gitTransport struct {
	client         *Client
	endpoint, repo string
	watch          *stallWatch
	refused        error
	answered       bool // the upload-pack request was answered with 200
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
			return nil, err
		}
		g.watch.alive()
		answer.Request = request
		if g.client.dropToken(answer, g.endpoint, g.repo) {
			answer.Body.Close()
			continue
		}
		if refused := g.client.firstOr(g.client.refusal(answer, g.endpoint, g.repo, g.repo)); refused != nil && refused.Kind != MirrorNoKey {
			g.refused = refused
		}
		g.answered = answer.StatusCode == http.StatusOK && r.Method == http.MethodPost
		answer.Request = r
		return answer, nil
	}
}
