package host

import "log/slog"

// leastLogged is the size of weights from which their progress is logged.
const leastLogged = 1 << 30

// reading logs how much of the weights is in memory, once for each tenth: first what is copied, then what is read in
// place.
type reading struct {
	log                  *slog.Logger
	total, copied, tenth int64
}

// more counts bytes that were copied.
func (r *reading) more(bytes int64) {
	r.copied += bytes
	r.report(r.copied)
}

// ahead reports how many bytes of the rest were read.
func (r *reading) ahead(done, _ int64) { r.report(r.copied + done) }

func (r *reading) report(done int64) {
	if r.total < leastLogged {
		return
	}
	if now := min(10, 10*done/r.total); now > r.tenth {
		r.tenth = now
		r.log.Info("reading the weights", "percent", 10*now, "bytes", done, "of", r.total)
	}
}
