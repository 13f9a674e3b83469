package host

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// Of weights some of which are copied and some read ahead, a start tells both as one.
func TestStartLogsProgressWhileWeightsAreCopied(t *testing.T) {
	var said bytes.Buffer
	r := &reading{log: slog.New(slog.NewTextHandler(&said, nil)), total: 10 << 30}
	for range 6 << 30 / (8 << 20) {
		r.more(8 << 20)
	}
	if n := strings.Count(said.String(), "reading the weights"); n != 6 ||
		!strings.Contains(said.String(), "percent=60") {
		t.Errorf("%d lines: %s", n, said.String())
	}
	for done := int64(0); done <= 4<<30; done += 8 << 20 {
		r.ahead(done, 4<<30)
	}
	if n := strings.Count(said.String(), "reading the weights"); n != 10 ||
		!strings.Contains(said.String(), "percent=100") {
		t.Errorf("%d lines: %s", n, said.String())
	}
}
