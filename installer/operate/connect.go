package operate

import (
	"cmp"
	"embed"
	"strconv"
	"strings"

	"slipway/installer"
	"slipway/installer/plan"
)

// The settings of each client are text files with {{API}}, {{ROOT}} (that without /v1), {{MODEL}}, {{WINDOW}} and
// {{KEY}} to fill in. They are given out, never written: where they go is a person's decision.
//
//go:embed connect/*.txt
var connectTexts embed.FS

//go:embed agent/*.md
var agentTexts embed.FS

// anyKey is what clients that insist on a key may send: on loopback our server asks for none.
const anyKey = "slipway-local"

// ConnectAnswer is the answer of Connect.
type ConnectAnswer struct {
	Client string `json:"client"`
	API    string `json:"api"`
	Model  string `json:"model"`
	Text   string `json:"text"`
	// Settings says whose values these are: "set up", "begun" (the set-up was interrupted), or "default" (nothing is
	// set up).
	Settings string  `json:"settings"`
	Callers  Callers `json:"callers"` // beside the programs of this machine, which need no key
}

// defaultWindowTokens is the window of the default set-up: the embedded model's.
const defaultWindowTokens = 32768

// ConnectInput is the input of Connect.
type ConnectInput struct {
	Client string `json:"client"` // one of Clients
}

// Connect gives the settings for a client, for what is set up or for a set-up without wishes.
func (o *Operator) Connect(in ConnectInput) (ConnectAnswer, error) {
	raw, err := connectTexts.ReadFile("connect/" + in.Client + ".txt")
	if err != nil {
		return ConnectAnswer{}, wrong("connect needs one client of: %s", strings.Join(Clients(), ", "))
	}
	port, model, window := cmp.Or(o.Environment.Port, installer.DefaultPort), "pocket", defaultWindowTokens
	callers := CallersOf("", plan.Request{})
	var settings string
	set, err := o.Settings()
	switch begun, open := o.recorded(); {
	case err == nil:
		d := set.Decisions
		port, model, window, settings = d.Request.Port, d.Model.ID, d.Profile.WindowTokens, "set up"
		callers = CallersOf(d.Home, d.Request)
		for _, sentence := range callers.Sentences {
			o.Caller.Say(sentence)
		}
	case open:
		port, model, settings = begun.Port, begun.Model, "begun"
		o.Caller.Say("The set-up is not finished: these are its values.")
	default:
		settings = "default"
		o.Caller.Say("Nothing is set up yet: these are the values of a set-up without flags.")
	}
	a := ConnectAnswer{Client: in.Client, API: addressesOf(port, 0).API, Model: model, Settings: settings,
		Callers: callers}
	a.Text = strings.NewReplacer("{{API}}", a.API, "{{ROOT}}", strings.TrimSuffix(a.API, "/v1"), "{{MODEL}}", model,
		"{{WINDOW}}", strconv.Itoa(window), "{{KEY}}", anyKey).Replace(string(raw))
	return a, nil
}

// Clients are the names of the clients that Connect knows.
func Clients() []string {
	entries, err := connectTexts.ReadDir("connect")
	if err != nil {
		panic("operate: embedded file: " + err.Error())
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".txt"))
	}
	return names
}

// AgentAnswer is the answer of AgentPrompt.
type AgentAnswer struct {
	Language string `json:"language"`
	Text     string `json:"text"`
}

// AgentInput is the input of AgentPrompt.
type AgentInput struct {
	Language string `json:"language"` // "en" or "ru"
	Command  string `json:"command"`  // how a person starts this program
}

// AgentPrompt is the text that a person hands to an assistant.
func AgentPrompt(in AgentInput) (AgentAnswer, error) {
	raw, err := agentTexts.ReadFile("agent/prompt." + in.Language + ".md")
	if err != nil {
		return AgentAnswer{}, wrong("--lang is %q, and there are en and ru", in.Language)
	}
	return AgentAnswer{in.Language, strings.ReplaceAll(string(raw), "{{SLIPWAY}}", in.Command)}, nil
}
