package main

import (
	"bytes"
	"sync"
)

// watched is output that one goroutine writes and another looks at.
type watched struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buffer.Write(p)
}

func (w *watched) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buffer.String()
}
