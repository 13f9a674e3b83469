package testhub

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Server is a running hub. URL is the hub, CDNURL where its files are.
type Server struct {
	URL, CDNURL             string
	Token                   string // what gated and private repositories ask for
	PageSize                int    // entries a page of the tree; 0 is 1,000
	BytesPerSecondPerStream int64  // 0: no limit

	mu       sync.Mutex
	repos    map[string]*Repo
	faults   []*Fault
	signed   map[string]bool
	log      []Seen
	gitRoot  string
	servers  []*http.Server
	onServed func(total int64)
	total    int64
}

// Seen is one request that the hub got. From and To are the bytes of the file that were sent.
type Seen struct {
	Place         Place
	Method, Path  string
	Range         string
	IfRange       string
	Authorization string
	Status        int
	From, To      int64
}

// Start serves on two free ports of 127.0.0.1. dir is where git repositories are made.
func Start(dir string) (*Server, error) {
	s := &Server{Token: "hf_testhubtoken0123456789", repos: map[string]*Repo{}, signed: map[string]bool{},
		gitRoot: filepath.Join(dir, "git")}
	if err := os.MkdirAll(s.gitRoot, 0o755); err != nil {
		return nil, err
	}
	for _, side := range []struct {
		url     *string
		handler http.HandlerFunc
	}{{&s.URL, s.serveAPI}, {&s.CDNURL, s.serveCDN}} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		server := &http.Server{Handler: side.handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: nil}
		s.servers = append(s.servers, server)
		*side.url = "http://" + listener.Addr().String()
		go server.Serve(listener)
	}
	return s, nil
}

// Close stops both ports at once.
func (s *Server) Close() {
	for _, server := range s.servers {
		server.Close()
	}
}

// Log is every request so far.
func (s *Server) Log() []Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Seen(nil), s.log...)
}

// Forget empties the log.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log, s.total = nil, 0
}

// OnServed receives how many file bytes were sent in total, after each write.
func (s *Server) OnServed(f func(total int64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onServed = f
}

func (s *Server) see(seen Seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, seen)
}

func (s *Server) served(n int64) {
	s.mu.Lock()
	s.total += n
	total, tell := s.total, s.onServed
	s.mu.Unlock()
	if tell != nil {
		tell(total)
	}
}

func (s *Server) repo(name string) *Repo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repos[name]
}

func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	w.Header().Set("X-Request-Id", "Root=1-test")
	switch {
	case len(parts) >= 4 && parts[0] == "api" && parts[1] == "models":
		s.serveModels(w, r, parts[2]+"/"+parts[3], parts[4:])
	case len(parts) > 4 && parts[2] == "resolve":
		s.serveResolve(w, r, parts[0]+"/"+parts[1], parts[3], strings.Join(parts[4:], "/"))
	case len(parts) > 2:
		s.serveGit(w, r, parts)
	default:
		http.NotFound(w, r)
	}
}

// admit answers 401, 403 and 404 as the hub does, and returns the repository when the request may see it.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, name string) *Repo {
	auth := r.Header.Get("Authorization")
	deny := func(status int, code, message string) *Repo {
		if code != "" {
			w.Header().Set("X-Error-Code", code)
		}
		w.Header().Set("X-Error-Message", message)
		http.Error(w, `{"error":"`+message+`"}`, status)
		return nil
	}
	known := auth == "Bearer "+s.Token
	repo := s.repo(name)
	switch {
	case auth != "" && !known:
		return deny(401, "", "Invalid credentials in Authorization header")
	case repo == nil && known:
		return deny(404, "RepoNotFound", "Repository not found")
	case repo == nil, repo.Private && !known:
		return deny(401, "RepoNotFound", "Invalid username or password.")
	case repo.Disabled:
		return deny(403, "", "Access to this resource is disabled.")
	case repo.Gated && !known:
		return deny(401, "GatedRepo", "Access to model "+name+" is restricted. You must be authenticated to access it.")
	}
	return repo
}

func (s *Server) serveModels(w http.ResponseWriter, r *http.Request, name string, rest []string) {
	s.see(Seen{Place: Tree, Method: r.Method, Path: r.URL.Path, Authorization: r.Header.Get("Authorization")})
	if fault := s.fault(Tree, r.URL.Path); silent(r, fault) || plainFault(w, fault) {
		return
	}
	repo := s.admit(w, r, name)
	if repo == nil {
		return
	}
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		json.NewEncoder(w).Encode(v)
	}
	info := map[string]any{"_id": "1", "id": name, "modelId": name, "sha": repo.Revision, "private": repo.Private,
		"gated":    repo.Gated,
		"disabled": repo.Disabled, "downloads": 0, "likes": 0, "tags": []string{},
		"lastModified": "2026-01-01T00:00:00.000Z"}
	revision := "main"
	if len(rest) > 1 {
		revision, _ = url.PathUnescape(rest[1])
	}
	if revision != "main" && revision != string(repo.Revision) {
		w.Header().Set("X-Error-Code", "RevisionNotFound")
		http.Error(w, `{"error":"Invalid rev id"}`, 404)
		return
	}
	switch {
	case len(rest) == 0, rest[0] == "revision":
		answer(info)
	case rest[0] == "refs":
		answer(map[string]any{"branches": []any{
			map[string]any{"name": "main", "ref": "refs/heads/main", "targetCommit": repo.Revision}}, "tags": []any{},
			"converts": []any{}})
	case rest[0] == "tree":
		s.serveTree(w, r, repo, answer)
	case rest[0] == "paths-info" && r.Method == http.MethodPost:
		var ask struct{ Paths []string }
		if json.NewDecoder(r.Body).Decode(&ask) != nil {
			http.Error(w, "bad", 400)
			return
		}
		found := []any{}
		for _, p := range ask.Paths {
			if f, ok := repo.file(p); ok {
				found = append(found, f.entry())
			}
		}
		answer(found)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) serveTree(w http.ResponseWriter, r *http.Request, repo *Repo, answer func(any)) {
	page := s.PageSize
	if page == 0 {
		page = 1000
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	to := min(from+page, len(repo.files))
	if to < len(repo.files) {
		next := *r.URL
		query := next.Query()
		query.Set("cursor", strconv.Itoa(to))
		next.RawQuery = query.Encode()
		w.Header().Set("Link", fmt.Sprintf(`<%s%s>; rel="next"`, s.URL, next.String()))
	}
	list := []any{}
	for _, f := range repo.files[min(from, to):to] {
		list = append(list, f.entry())
	}
	answer(list)
}

func (f servedFile) entry() map[string]any {
	size, sum := f.Content.Size(), f.sha256
	if f.ListedBytes != 0 {
		size = f.ListedBytes
	}
	if f.ListedSHA256 != "" {
		sum = f.ListedSHA256
	}
	e := map[string]any{"type": "file", "oid": f.blob, "size": size, "path": f.Path}
	if f.LFS {
		e["lfs"] = map[string]any{"oid": sum, "size": size, "pointerSize": f.pointer}
	}
	return e
}

func (s *Server) serveResolve(w http.ResponseWriter, r *http.Request, name, revision, path string) {
	seen := Seen{Place: Resolve, Method: r.Method, Path: r.URL.Path, Range: r.Header.Get("Range"),
		IfRange:       r.Header.Get("If-Range"),
		Authorization: r.Header.Get("Authorization"), Status: 302}
	fault := s.fault(Resolve, r.URL.Path)
	if plainFault(w, fault) {
		s.see(seen)
		return
	}
	repo := s.admit(w, r, name)
	if repo == nil {
		s.see(seen)
		return
	}
	f, ok := repo.file(path)
	if !ok {
		w.Header().Set("X-Error-Code", "EntryNotFound")
		http.Error(w, "Entry not found", 404)
		s.see(seen)
		return
	}
	if fault == nil || fault.Kind != BareResolve {
		w.Header().Set("X-Repo-Commit", string(repo.Revision))
	}
	if !f.LFS {
		s.serveFile(w, r, Resolve, f, `"`+f.blob+`"`, fault, seen)
		return
	}
	s.see(seen)
	if fault == nil || fault.Kind != BareResolve {
		w.Header().Set("X-Linked-Size", strconv.FormatInt(f.Content.Size(), 10))
		w.Header().Set("X-Linked-Etag", `"`+f.sha256+`"`)
	}
	var secret [16]byte
	rand.Read(secret[:])
	signature := hex.EncodeToString(secret[:])
	s.mu.Lock()
	s.signed[signature] = true
	s.mu.Unlock()
	w.Header().Set("Location", fmt.Sprintf("%s/repos/%s/%s?Expires=4102444800&Signature=%s&X-Amz-Security-Token=%s",
		s.CDNURL, name, f.sha256, signature, signature))
	w.WriteHeader(http.StatusFound)
	w.Write([]byte("Found. Redirecting to the file, and this body has a length of its own."))
}

// Expire makes every signed address so far answer 403.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.signed)
}

func (s *Server) serveCDN(w http.ResponseWriter, r *http.Request) {
	seen := Seen{Place: CDN, Method: r.Method, Path: r.URL.Path, Range: r.Header.Get("Range"),
		IfRange: r.Header.Get("If-Range"), Authorization: r.Header.Get("Authorization")}
	fault := s.fault(CDN, r.URL.Path)
	if plainFault(w, fault) {
		s.see(seen)
		return
	}
	s.mu.Lock()
	good := s.signed[r.URL.Query().Get("Signature")]
	s.mu.Unlock()
	if !good {
		seen.Status = 403
		s.see(seen)
		w.Header().Set("Content-Type", "application/xml")
		http.Error(w, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>",
			http.StatusForbidden)
		return
	}
	parts := strings.Split(r.URL.Path, "/")
	repo := s.repo(parts[2] + "/" + parts[3])
	for _, f := range repo.files {
		if f.sha256 == parts[4] {
			s.serveFile(w, r, CDN, f, `"`+f.sha256+`"`, fault, seen)
			return
		}
	}
	http.NotFound(w, r)
}

// serveGit hands the request to git itself.
func (s *Server) serveGit(w http.ResponseWriter, r *http.Request, parts []string) {
	name := parts[0] + "/" + strings.TrimSuffix(parts[1], ".git")
	s.see(Seen{Place: Git, Method: r.Method, Path: r.URL.Path, Authorization: r.Header.Get("Authorization")})
	if fault := s.fault(Git, r.URL.Path); silent(r, fault) || plainFault(w, fault) {
		return
	}
	if s.admit(w, r, name) == nil {
		return
	}
	program, err := exec.LookPath("git")
	if err != nil {
		http.Error(w, err.Error(), 500)
		return
	}
	inner := r.Clone(r.Context())
	inner.URL.Path = "/" + name + ".git/" + strings.Join(parts[2:], "/")
	backend := &cgi.Handler{Path: program, Args: []string{"http-backend"}, Env: []string{
		"GIT_PROJECT_ROOT=" + s.gitRoot, "GIT_HTTP_EXPORT_ALL=1"}}
	backend.ServeHTTP(w, inner)
}
