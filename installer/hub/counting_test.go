package hub

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// counting counts requests whose body is not closed yet.
type counting struct {
	inner     http.RoundTripper
	now, most *atomic.Int64
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	n := c.now.Add(1)
	for {
		most := c.most.Load()
		if n <= most || c.most.CompareAndSwap(most, n) {
			break
		}
	}
	answer, err := c.inner.RoundTrip(r)
	if err != nil {
		c.now.Add(-1)
		return nil, err
	}
	answer.Body = &countedBody{answer.Body, sync.OnceFunc(func() { c.now.Add(-1) })}
	return answer, nil
}

type countedBody struct {
	io.ReadCloser
	done func()
}

func (b *countedBody) Close() error {
	b.done()
	return b.ReadCloser.Close()
}
