package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"slipway/engine/pass"
)

// A client that closes its sending side once it has sent its request still reads. net/http cancels the request, and
// what it reads then must not look like a whole reply.
func TestCancelledReplyDoesNotLookComplete(t *testing.T) {
	text := `{"model":"pocket","prompt":"Hi","max_tokens":900`
	tests := []struct {
		name, path, body string
		begun            bool // the response has a head before the cut
		keepAlive        time.Duration
	}{
		{"plain chat", chatPath, chat(thinkingOff), false, 0},
		{"plain chat with white space in front", chatPath, chat(thinkingOff), true, time.Millisecond},
		{"chat stream", chatPath, chat(thinkingOff + `,"stream":true,"stream_options":{"include_usage":true}`), true,
			0},
		{"plain text", textPath, text + `}`, false, 0},
		{"text stream", textPath, text + `,"stream":true}`, true, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			step, over := make(chan struct{}), make(chan struct{})
			s := start(t, setup{keepAlive: test.keepAlive, pass: func([]pass.Segment) error {
				select {
				case <-step:
				case <-over:
				}
				return nil
			}})
			s.say(strings.Repeat("Hello! ", 100))
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+
				"application/json\r\nContent-Length: %d\r\n\r\n%s", test.path, len(test.body), test.body)
			reader := bufio.NewReader(conn)
			for range 4 {
				step <- struct{}{}
			}
			if test.begun {
				if _, err := reader.Peek(200); err != nil { // the head and what the client is kept alive with
					t.Fatal(err)
				}
			}
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			for passes := s.net.Passes(); s.engine.Status().Active > 0; { // until the server has heard
				select {
				case step <- struct{}{}:
				case <-time.After(time.Millisecond):
				}
				if s.net.Passes() > passes+600 {
					t.Fatal("the half-closed request continues to its end")
				}
				time.Sleep(time.Millisecond)
			}
			close(over)
			response, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := io.ReadAll(response.Body) // a connection cut in the middle would do as well
			body := string(raw)
			if (response.StatusCode == http.StatusOK) != test.begun {
				t.Errorf("status %d", response.StatusCode)
			}
			if strings.Contains(body, "[DONE]") || strings.Contains(body, `"finish_reason":"`) ||
				!strings.Contains(body, `"code":"cancelled"`) {
				t.Errorf("a cut reply reads: %s", body)
			}
		})
	}
}
