package hub

import (
	"errors"
	"net/url"
	"regexp"
)

var (
	tokenShape = regexp.MustCompile(`hf_[A-Za-z0-9]{10,}`)
	urlShape   = regexp.MustCompile(`(https?://[^\s"'?#]+)[?#][^\s"']*`)
)

// redactURL drops user, query and fragment: signed addresses carry their secret there.
func redactURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an unreadable address"
	}
	u.User, u.RawQuery, u.Fragment, u.ForceQuery = nil, "", "", false
	return redactText(u.String())
}

// redactText removes tokens and the queries of addresses from foreign text.
func redactText(s string) string {
	return tokenShape.ReplaceAllString(urlShape.ReplaceAllString(s, "$1"), "hf_…")
}

// bare unwraps the *url.Error of net/http, whose text holds the whole signed address.
func bare(err error) error {
	var wrapped *url.Error
	for errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return err
}
