package neighbor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"slipway/installer/neighbor/record"
	"slipway/termtext"
)

// Result is how a restore went.
type Result string

const (
	Restored    Result = "restored"     // it answers, with the same model
	KeptRunning Result = "kept_running" // it was never stopped; the record is gone
	Held        Result = "held"         // slipway still needs its place
	Waiting     Result = "waiting"      // it is ending, or loading
	PortTaken   Result = "port_taken"   // another program has its port; the record stays
	Failed      Result = "failed"       // it did not start; the record stays
	LeftAlone   Result = "left_alone"   // its own slipway decided since, or its home is gone; no record is kept
	Would       Result = "would"        // dry run: it would be started
)

// Outcome is how the restore of one stopped server went, with nothing in it that may not be shown.
type Outcome struct {
	ID       string   `json:"id"`
	Kind     string   `json:"kind"`
	Title    string   `json:"title"`
	Port     int      `json:"port"`
	Models   []string `json:"models"` // ids, fit to print
	Result   Result   `json:"result"`
	Sentence string   `json:"sentence"`
	Log      string   `json:"log"` // its output, relative to slipway's home; empty where it goes elsewhere
	Unloaded bool     `json:"-"`   // its models were unloaded; the server was not stopped
	Back     string   `json:"-"`   // that it is started again, to follow a "first" or a "now"
}

func outcome(r record.Record, result Result, format string, args ...any) Outcome {
	w := wordsOf(r)
	return Outcome{ID: r.ID, Kind: r.Server, Title: plain(r.Title), Port: r.Port, Models: ModelIDs(r.Models),
		Result: result, Sentence: fmt.Sprintf(format, args...), Unloaded: r.Channel == record.ChannelUnload,
		Back: w.name + " " + w.is + " " + w.started + " again"}
}

// ModelIDs are the models' names, fit to print; never nil.
func ModelIDs(models []record.Model) []string {
	ids := []string{}
	for _, m := range models {
		ids = append(ids, plain(m.ID))
	}
	return ids
}

// words name a stopped server and what was done to it: one that only unloaded its models was not stopped.
type words struct{ name, is, was, stopped, start, started string }

func wordsOf(r record.Record) words {
	var models []string
	for _, m := range r.Models {
		models = append(models, quoted(m.ID))
	}
	where := plain(r.Title) + onPorts(r)
	if r.OwnHome != "" {
		where = "The server of " + plain(r.OwnHome) + onPorts(r)
	}
	switch {
	case r.Channel == record.ChannelUnload && len(models) > 1:
		return words{strings.Join(models, ", ") + " of " + where, "are", "were", "unloaded", "loads them", "loaded"}
	case r.Channel == record.ChannelUnload:
		return words{strings.Join(models, "") + " of " + where, "is", "was", "unloaded", "loads it", "loaded"}
	case len(models) > 0 && r.OwnHome == "":
		where = plain(r.Title) + " with " + models[0] + onPorts(r)
	}
	return words{where, "is", "was", "stopped", "starts it", "started"}
}

// onPorts names the ports of a server.
func onPorts(r record.Record) string {
	if len(r.Ports) < 2 {
		return fmt.Sprintf(" on port %d", r.Port)
	}
	var ports []string
	for _, port := range r.Ports {
		ports = append(ports, strconv.Itoa(port))
	}
	last := len(ports) - 1
	return " on ports " + strings.Join(ports[:last], ", ") + " and " + ports[last]
}

func damagedOutcome(err error) Outcome {
	if unsafe := new(record.UnsafeError); errors.As(err, &unsafe) {
		return Outcome{Models: []string{}, Result: Failed, Sentence: termtext.Name(unsafe.Error(), 1000) + "."}
	}
	return Outcome{Models: []string{}, Result: Failed, Sentence: fmt.Sprintf("%s. The file is left as it is; start "+
		"that server yourself and delete the file.", errText(err))}
}

// unsafeFolder is the one outcome where the records' folder cannot be believed at all.
func unsafeFolder(damaged []error) []Outcome {
	for _, err := range damaged {
		if unsafe := new(record.UnsafeError); errors.As(err, &unsafe) {
			return []Outcome{damagedOutcome(err)}
		}
	}
	return nil
}
