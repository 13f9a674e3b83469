package kernels

// scratch is working memory of one call. It comes from a list that keeps what was given back, so that a warm program
// allocates none; unlike a sync.Pool the list survives a collection.
type scratch struct {
	wide []float32 // grows to the largest In
}

// idle holds as many as there can be workers on the machines we know; more are left to the collector.
var idle = make(chan *scratch, 256)

func takeScratch() *scratch {
	select {
	case s := <-idle:
		return s
	default:
		return new(scratch)
	}
}

func (s *scratch) give() {
	select {
	case idle <- s:
	default:
	}
}

// row returns n floats with any content.
func (s *scratch) row(n int) []float32 {
	if cap(s.wide) < n {
		s.wide = make([]float32, n)
	}
	return s.wide[:n]
}
