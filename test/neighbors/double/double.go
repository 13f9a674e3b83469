// Package double holds the doubles of other people's model servers. Each is a program in a folder next to this one; the
// replies follow the facts about the real servers (docs/neighbours.md names versions and sources).
//
// A double takes the real server's command line plus --port and --double FOLDER. In FOLDER the file "mode" is read at
// every request: idle, busy, moving, draining, wedged, respawning, protected, slow, dishonest, stubborn, or
// wrong:SHAPE. "load_ms" delays listening, "child" is the command of a child process, "exit_ms" the end after a signal.
// Starts and ends are lines of "log".
package double

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Kind is one server to play.
type Kind struct {
	Name string
	// Paths answer to GET, and Posts to POST.
	Paths, Posts map[string]func(s *Server) Reply
	// Header is added to every answer.
	Header map[string]string
	// KeyFrom protects every path but these in mode protected.
	Public []string
	// SocketWhileBusy holds a connection while it works, as ds4-server does.
	SocketWhileBusy bool
}

// Reply is what a path answers: a value as JSON, or Text as it is.
type Reply struct {
	Status int // 0 means 200
	JSON   any
	Text   string
}

// Server is the running double.
type Server struct {
	Kind     Kind
	Folder   string
	Port     int
	Model    string
	Started  time.Time
	requests atomic.Int64
	body     []byte
}

func (s *Server) file(name string) string {
	b, _ := os.ReadFile(filepath.Join(s.Folder, name))
	return strings.TrimSpace(string(b))
}

func (s *Server) mode() string {
	if mode := s.file("mode"); mode != "" {
		return mode
	}
	return "idle"
}

// Working reports whether the double plays a server with a request on it.
func (s *Server) Working() bool { return s.mode() == "busy" || s.mode() == "wedged" }

func (s *Server) active() int {
	if s.Working() {
		return 1
	}
	return 0
}

// completed is the counter of finished requests. In mode moving every look finds another number.
func (s *Server) completed() int64 {
	if s.mode() == "moving" {
		return s.requests.Add(1)
	}
	return 7
}

func (s *Server) millis(name string) time.Duration {
	n, _ := strconv.Atoi(s.file(name))
	return time.Duration(n) * time.Millisecond
}

func (s *Server) log(format string, args ...any) {
	f, err := os.OpenFile(filepath.Join(s.Folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	fmt.Fprintf(f, format+"\n", args...)
}

// Main plays the kind until a signal ends it.
func Main(kind Kind) {
	s := &Server{Kind: kind, Port: 8000, Model: "org/double-7b", Started: time.Now()}
	host, monitor := "127.0.0.1", ""
	for i, arg := range os.Args {
		if i+1 == len(os.Args) {
			break
		}
		switch next := os.Args[i+1]; arg {
		case "--port":
			s.Port, _ = strconv.Atoi(next)
		case "--host":
			host = next
		case "--monitor-port":
			monitor = next
		case "--model":
			s.Model = next
		case "--double":
			s.Folder = next
		}
	}
	if s.Folder == "" {
		fmt.Fprintln(os.Stderr, "a double needs --double FOLDER")
		os.Exit(2)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	time.Sleep(s.millis("load_ms"))
	listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(s.Port)))
	if err != nil {
		s.log("refused %d %v", os.Getpid(), err)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	environment, _ := json.Marshal(os.Environ())
	arguments, _ := json.Marshal(os.Args)
	cwd, _ := os.Getwd()
	os.WriteFile(filepath.Join(s.Folder, "seen.json"), fmt.Appendf(nil, `{"pid":%d,"argv":%s,"env":%s,"cwd":%q}`,
		os.Getpid(), arguments, environment, cwd), 0o600)
	s.log("start %d", os.Getpid())
	if s.Kind.SocketWhileBusy {
		go s.holdSocket(listener.Addr().String())
	}
	if monitor != "" {
		second, err := net.Listen("tcp", net.JoinHostPort(host, monitor))
		if err != nil {
			s.log("refused %d %v", os.Getpid(), err)
			os.Exit(1)
		}
		go http.Serve(second, http.HandlerFunc(s.answer))
	}
	child := s.startChild()
	go s.burn()
	go http.Serve(listener, http.HandlerFunc(s.answer))
	for {
		sig := <-signals
		if s.mode() == "stubborn" {
			s.log("ignored %d %v", os.Getpid(), sig)
			continue
		}
		time.Sleep(s.millis("exit_ms"))
		if child != nil {
			child.Process.Signal(syscall.SIGTERM)
			child.Wait()
		}
		s.log("end %d %v", os.Getpid(), sig)
		if s.mode() == "respawning" {
			listener.Close()
			successor := exec.Command(os.Args[0], os.Args[1:]...)
			successor.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := successor.Start(); err != nil {
				s.log("no successor: %v", err)
			}
		}
		os.Exit(0)
	}
}

// startChild runs the command in the file "child", an argument a line, as a router runs a process for each model.
func (s *Server) startChild() *exec.Cmd {
	argv := strings.Split(s.file("child"), "\n")
	if argv[0] == "" {
		return nil
	}
	child := exec.Command(argv[0], argv[1:]...)
	if err := child.Start(); err != nil {
		s.log("no child: %v", err)
		return nil
	}
	return child
}

// burn uses one core in mode dishonest, while the answers say that nothing is done.
func (s *Server) burn() {
	for {
		if s.mode() != "dishonest" {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
		}
	}
}

// holdSocket keeps a connection to itself while it plays a working server.
func (s *Server) holdSocket(address string) {
	var held net.Conn
	for {
		switch {
		case s.Working() && held == nil:
			held, _ = net.Dial("tcp", address)
		case !s.Working() && held != nil:
			held.Close()
			held = nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	for name, value := range s.Kind.Header {
		w.Header().Set(name, value)
	}
	mode := s.mode()
	switch mode {
	case "slow":
		time.Sleep(5 * time.Second)
	case "draining":
		if hijacker, ok := w.(http.Hijacker); ok {
			if c, _, err := hijacker.Hijack(); err == nil {
				c.Close()
				return
			}
		}
	case "protected":
		open := false
		for _, p := range s.Kind.Public {
			open = open || p == r.URL.Path
		}
		if !open && r.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			write(w, Reply{Status: 401, JSON: map[string]any{
				"error": map[string]any{"message": "missing or invalid API key", "type": "authentication_error"}}})
			return
		}
	}
	table := s.Kind.Paths
	if r.Method == http.MethodPost {
		table = s.Kind.Posts
		var b bytes.Buffer
		b.ReadFrom(r.Body)
		s.body = b.Bytes()
	}
	handler, ok := table[r.URL.Path]
	if !ok {
		if handler, ok = s.Kind.Paths["404"]; !ok {
			write(w, Reply{Status: 404, JSON: map[string]any{"detail": "Not Found"}})
			return
		}
	}
	reply := handler(s)
	if shape, ok := strings.CutPrefix(mode, "wrong:"); ok {
		reply = spoil(reply, shape)
	}
	write(w, reply)
}

func write(w http.ResponseWriter, r Reply) {
	if r.Status == 0 {
		r.Status = 200
	}
	if r.JSON == nil {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(r.Status)
		w.Write([]byte(r.Text))
		return
	}
	b, _ := json.Marshal(r.JSON)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.Status)
	w.Write(b)
}

// Shapes are the wrong replies that every kind can give.
var Shapes = []string{"html", "empty", "array", "null", "cut", "strings", "missing", "negative", "huge", "error"}

// spoil turns a right reply into a wrong one that a careless reader could take for idle.
func spoil(r Reply, shape string) Reply {
	switch shape {
	case "html":
		return Reply{Text: "<!doctype html><title>ok</title>"}
	case "empty":
		return Reply{JSON: map[string]any{}}
	case "array":
		return Reply{JSON: []any{r.JSON}}
	case "null":
		return Reply{Text: "null"}
	case "cut":
		b, _ := json.Marshal(r.JSON)
		return Reply{Text: string(b[:len(b)/2])}
	case "error":
		return Reply{Status: 500, JSON: r.JSON}
	case "huge":
		return Reply{Text: strings.Repeat(" ", 2<<20) + "{}"}
	}
	b, err := json.Marshal(r.JSON)
	if err != nil || r.JSON == nil {
		return r
	}
	var value any
	json.Unmarshal(b, &value)
	return Reply{Status: r.Status, JSON: twist(value, shape)}
}

// twist changes every number and flag of a reply: into text, into nothing, or below zero.
func twist(value any, shape string) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, item := range v {
			_, isNumber := item.(float64)
			_, isFlag := item.(bool)
			// kept, so that the kind is still seen
			telling := key == "ok" || key == "ready" || key == "model_loaded" || key == "lmstudio"
			switch {
			case key == "pid" || telling:
				out[key] = item
			case shape == "missing" && (isNumber || isFlag):
			case shape == "strings" && isFlag:
				out[key] = fmt.Sprint(item)
			default:
				out[key] = twist(item, shape)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, item := range v {
			out = append(out, twist(item, shape))
		}
		return out
	case float64:
		switch shape {
		case "strings":
			return strconv.FormatFloat(v, 'f', -1, 64)
		case "negative":
			return -1 - v
		}
	}
	return value
}
