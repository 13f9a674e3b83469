package turn

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"slipway/engine/memory/keep"
	"slipway/engine/sample"
	"slipway/engine/serve"
	"slipway/engine/text"
)

// Engine is what this package needs of the queue; *serve.Engine is it.
type Engine interface {
	Submit(context.Context, serve.Request) (*serve.Reply, error)
	WindowTokens() int
	Ledger() *serve.Ledger
	MostDraftTokens() int
}

// Model names what is served.
type Model struct {
	ID       string
	Revision string // 40 hex digits, or empty where unknown
	Version  string // of the server
	Started  time.Time
}

// Options of a service. Without an Engine nothing may be started.
type Options struct {
	Engine    Engine
	Text      *text.Model
	Defaults  sample.Params // the model's own sampling values
	Keeper    *keep.Keeper  // the engine's; nil: nothing is kept between requests
	Normalize []Rule        // of system messages
	Model     Model
	// Approximations are what of the settings may change answers, named with every usage; nil: nothing.
	Approximations []string
	Now            func() time.Time
}

// Service starts turns. It is safe for concurrent use.
type Service struct {
	opt     Options
	pieces  func() *pieces // of the tokenizer, made when they are first needed
	formats *formats
}

// New makes a service.
func New(opt Options) *Service {
	return &Service{opt, sync.OnceValue(func() *pieces { return piecesOf(opt.Text.Tokenizer) }), newFormats(opt.Text)}
}

// Model names what is served.
func (s *Service) Model() Model { return s.opt.Model }

// Family names the model's family.
func (s *Service) Family() string { return s.opt.Text.Family.Name }

// Defaults are the model's own sampling values.
func (s *Service) Defaults() sample.Params { return s.opt.Defaults }

// MostDraftTokens is how many tokens a draft can propose at a time; 0: nothing drafts.
func (s *Service) MostDraftTokens() int { return s.opt.Engine.MostDraftTokens() }

// VocabTokens is the number of token ids that a client may name.
func (s *Service) VocabTokens() int { return s.opt.Text.Tokenizer.VocabSize() }

// WindowTokens bounds prompt and reply together.
func (s *Service) WindowTokens() int { return s.opt.Engine.WindowTokens() }

// Now is the server's clock.
func (s *Service) Now() time.Time { return s.opt.Now() }

// TemplateUses reports whether the model's chat template uses a variable. One that it does not use changes nothing.
func (s *Service) TemplateUses(variable string) bool { return s.opt.Text.Template.Uses(variable) }

// WrongModel refuses every model but the one that is served; nil for that one.
func (s *Service) WrongModel(name string) *Error {
	if name == s.opt.Model.ID {
		return nil
	}
	return &Error{Kind: NotFound, Param: "model", Code: "model_not_found",
		Sentence: fmt.Sprintf("the model %.100q is not here; this server has: %s", name, s.opt.Model.ID)}
}

// Fingerprint names what a seed is good for: the same fingerprint, seed and request give the same reply.
func (s *Service) Fingerprint() string {
	revision := s.opt.Model.Revision
	if len(revision) > 8 {
		revision = revision[:8]
	}
	return strings.TrimSuffix("slipway-"+s.opt.Model.Version+"-"+revision, "-")
}

// NewID gives prefix and 24 hex digits of the system's randomness: unique without a register.
func NewID(prefix string) string {
	var b [12]byte
	rand.Read(b[:])
	return prefix + hex.EncodeToString(b[:])
}

// NewSeed is the seed of a request that names none.
func NewSeed() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}
