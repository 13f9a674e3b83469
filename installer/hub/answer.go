package hub

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"slipway/manifests"
)

// A verdict on an answer to a request for bytes [from, to) of a file of size bytes.
type verdict int

const (
	takeBytes    verdict = iota // the body is exactly what was asked for
	wholeInstead                // 200 where 206 was asked for: the server ignores Range, or the file changed
	staleAddress                // a signed address has run out: resolve again
	tryLater                    // a failure that may pass
	notTheFile                  // an answer that is something else, such as an error page
)

// judge looks at status and headers only. whole: no Range was sent.
func judge(answer *http.Response, whole bool, from, to, size int64) (verdict, error) {
	bad := func(v verdict, format string, args ...any) (verdict, error) {
		return v, &AnswerError{answer.StatusCode, fmt.Sprintf(format, args...)}
	}
	switch status := answer.StatusCode; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound,
		status == http.StatusGone:
		return bad(staleAddress, "the address of the file is not good any more")
	case status == http.StatusRequestedRangeNotSatisfiable:
		return bad(notTheFile, "the server has no bytes %d to %d of this file (it says %q)", from, to-1,
			plain(answer.Header.Get("Content-Range")))
	case status != http.StatusOK && status != http.StatusPartialContent:
		return bad(tryLater, "the server failed")
	}
	if encoding := answer.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return bad(notTheFile, "the server sent the file encoded as %q, which was not asked for", plain(encoding))
	}
	if !whole {
		if answer.StatusCode == http.StatusOK {
			if isPage(answer) && answer.ContentLength != size {
				return bad(notTheFile, "a web page came instead of the file")
			}
			return bad(wholeInstead, "the server sent the whole file where a part was asked for")
		}
		want := fmt.Sprintf("bytes %d-%d/%d", from, to-1, size)
		if got := strings.TrimSpace(answer.Header.Get("Content-Range")); got != want {
			return bad(notTheFile, "the server sent %q where %q was asked for", plain(got), want)
		}
	} else if answer.StatusCode != http.StatusOK {
		return bad(notTheFile, "the server sent a part where the whole file was asked for")
	}
	if answer.ContentLength >= 0 && answer.ContentLength != to-from {
		return bad(notTheFile, "the server announces %d bytes where %d must come", answer.ContentLength, to-from)
	}
	if answer.ContentLength < 0 && isPage(answer) {
		return bad(notTheFile, "a web page came instead of the file")
	}
	return takeBytes, nil
}

func isPage(answer *http.Response) bool {
	return strings.HasPrefix(strings.ToLower(answer.Header.Get("Content-Type")), "text/html")
}

// strongETag is the validator that If-Range may carry, or "".
func strongETag(h http.Header) string {
	tag := h.Get("ETag")
	if strings.HasPrefix(tag, "W/") || !strings.HasPrefix(tag, `"`) || len(tag) < 3 || len(tag) > 256 {
		return ""
	}
	return tag
}

// checkResolve reads what the hub itself says of a file, before any redirect: the answer of the resolve address, whose
// Content-Length is the redirect's own and says nothing of the file.
func (c *Client) checkResolve(answer *http.Response, endpoint string, revision manifests.Revision,
	f manifests.File) error {
	commit := answer.Header.Get("X-Repo-Commit")
	if commit == "" && c.fromOrigin(endpoint) {
		return c.notAHub(answer.Request.URL.String(), "it names no commit (X-Repo-Commit)")
	}
	if commit != "" && commit != string(revision) {
		return &UpstreamDiffersError{f.Path, "its revision is", string(revision), plain(commit)}
	}
	if linked := answer.Header.Get("X-Linked-Size"); linked != "" {
		if n, err := strconv.ParseInt(linked, 10, 64); err == nil && n != f.Size {
			return &UpstreamDiffersError{f.Path, "its size is", fmt.Sprint(f.Size), fmt.Sprint(n)}
		}
	}
	tag := strings.Trim(strings.TrimPrefix(answer.Header.Get("X-Linked-Etag"), "W/"), `"`)
	if linked := manifests.Digest("sha256:" + tag); linked.Validate() == nil && linked != f.SHA256 {
		return &UpstreamDiffersError{f.Path, "its hash is", string(f.SHA256), string(linked)}
	}
	return nil
}
