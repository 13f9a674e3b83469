package host

import "log/slog"

// leastTold is from how many bytes of weights on their reading is told.
const leastTold = 1 << 30

// reading tells how much of the weights is in memory, once for each tenth: first what is copied, then what is read ahead in its place.
type reading struct {
	log                  *slog.Logger
	total, copied, tenth int64
}

// more is told how many bytes more were copied.
func (r *reading) more(bytes int64) {
	r.copied += bytes
	r.say(r.copied)
}

// ahead is told how many bytes of the rest were read.
func (r *reading) ahead(done, _ int64) { r.say(r.copied + done) }

func (r *reading) say(done int64) {
	if r.total < leastTold {
		return
	}
	if now := min(10, 10*done/r.total); now > r.tenth {
		r.tenth = now
		r.log.Info("reading the weights", "percent", 10*now, "bytes", done, "of", r.total)
	}
}
