package testhub

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// serveFile answers a GET or HEAD of a file, with Range and If-Range, and the fault if there is one.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, place Place, f servedFile, etag string, fault *Fault,
	seen Seen) {
	kind := Kind("")
	if fault != nil {
		kind = fault.Kind
	}
	size := f.Content.Size()
	from, to, ranged, ok := parseRange(r.Header.Get("Range"), size)
	if kind == NewETag {
		var b [8]byte
		rand.Read(b[:])
		etag = `"` + hex.EncodeToString(b[:]) + `"`
	}
	if match := r.Header.Get("If-Range"); ranged && match != "" && match != etag || kind == Whole || kind == NoLength &&
		fault.After < 0 {
		from, to, ranged, ok = 0, size, false, true
	}
	h := w.Header()
	h.Set("ETag", etag)
	h.Set("Accept-Ranges", "bytes")
	h.Set("Content-Type", "application/octet-stream")
	if !ok {
		h.Set("Content-Range", fmt.Sprintf("bytes */%d", size))
		seen.Status = 416
		s.see(seen)
		w.WriteHeader(416)
		return
	}
	length, total, first := to-from, size, from
	switch kind {
	case WrongRange:
		first++
	case WrongTotal:
		total += 7
	case Longer:
		length += 100
	case Shorter:
		length /= 2
	}
	status := http.StatusOK
	if ranged {
		status = http.StatusPartialContent
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, first+to-from-1, total))
	}
	body := io.Reader(io.NewSectionReader(f.Content, from, to-from))
	switch kind {
	case Longer:
		body = io.MultiReader(body, bytes.NewReader(make([]byte, 100)))
	case Shorter:
		body = io.LimitReader(body, length)
	case WrongBytes:
		body = &flipped{body, fault.After}
	case Gzip:
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		io.Copy(z, body)
		z.Close()
		h.Set("Content-Encoding", "gzip")
		body, length = &packed, int64(packed.Len())
	case NoLengthCut:
		body = io.LimitReader(body, length/2)
	}
	if kind != NoLength && kind != NoLengthCut {
		h.Set("Content-Length", strconv.FormatInt(length, 10))
	}
	seen.Status, seen.From, seen.To = status, from, from
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		s.see(seen)
		return
	}
	stop := int64(-1)
	if kind == Cut || kind == Reset || kind == Stall {
		stop = fault.After
	}
	n := s.send(w, r, body, stop, kind, fault)
	seen.To = from + n
	s.see(seen)
	if stop >= 0 && n >= stop {
		s.breakOff(w, r, kind)
	}
}

// send copies the body, at most stop bytes when stop is not negative, and says how many bytes went out.
func (s *Server) send(w http.ResponseWriter, r *http.Request, body io.Reader, stop int64, kind Kind, fault *Fault) (
	n int64) {
	chunk := make([]byte, 64<<10)
	if kind == Trickle {
		chunk = chunk[:1024]
	}
	began := time.Now()
	for {
		want := len(chunk)
		if stop >= 0 {
			want = int(min(int64(want), stop-n))
		}
		if want == 0 {
			http.NewResponseController(w).Flush()
			return n
		}
		got, err := io.ReadFull(body, chunk[:want])
		if got > 0 {
			if _, werr := w.Write(chunk[:got]); werr != nil {
				return n
			}
			n += int64(got)
			s.served(int64(got))
		}
		if err != nil {
			return n
		}
		if kind == Trickle {
			http.NewResponseController(w).Flush()
			time.Sleep(fault.Wait)
		}
		if limit := s.BytesPerSecondPerStream; limit > 0 {
			due := began.Add(time.Duration(float64(n) / float64(limit) * float64(time.Second)))
			time.Sleep(time.Until(due))
		}
		if r.Context().Err() != nil {
			return n
		}
	}
}

func (s *Server) breakOff(w http.ResponseWriter, r *http.Request, kind Kind) {
	if kind == Stall {
		<-r.Context().Done()
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok && kind == Reset {
		tcp.SetLinger(0)
	}
	conn.Close()
}

// parseRange reads "bytes=a-b" and "bytes=a-". ok is false when the range is outside the file.
func parseRange(value string, size int64) (from, to int64, ranged, ok bool) {
	spec, found := strings.CutPrefix(value, "bytes=")
	// an empty file has no parts; the hub's own client asks for one
	if !found || strings.Contains(spec, ",") || size == 0 {
		return 0, size, false, true
	}
	a, b, _ := strings.Cut(spec, "-")
	from, err := strconv.ParseInt(a, 10, 64)
	if err != nil {
		return 0, size, false, true
	}
	to = size
	if b != "" {
		last, err := strconv.ParseInt(b, 10, 64)
		if err != nil {
			return 0, size, false, true
		}
		to = min(last+1, size)
	}
	return from, to, true, from < to
}

// flipped inverts one byte of what it reads.
type flipped struct {
	r  io.Reader
	at int64
}

func (f *flipped) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if f.at >= 0 && f.at < int64(n) {
		p[f.at] ^= 0xff
	}
	f.at -= int64(n)
	return n, err
}
