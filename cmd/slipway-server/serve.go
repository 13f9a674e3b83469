package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"slipway/engine/api"
	"slipway/engine/host"
	"slipway/engine/serve"
)

func serveVerb(errOut io.Writer) *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "load a model and answer requests until a signal ends it",
		Flags: serveFlags(),
		Action: func(c *cli.Context) error {
			s, err := readSettings(c)
			if err != nil {
				return err
			}
			return serveModel(s, errOut)
		},
	}
}

// Bounds of a shutdown, which together stay under ten seconds.
const (
	finishPatience = 8 * time.Second // for running replies to end by themselves
	cutPatience    = time.Second     // for the running pass, after which its replies end with an error
	closePatience  = 300 * time.Millisecond
	// for the disk cache to write what it has: a point of a large model takes 0.2 s
	cachePatience = 500 * time.Millisecond
)

// keepAlive is well under the shortest header time-out of known clients (30 s).
const keepAlive = 10 * time.Second

// serveModel claims the addresses, opens the model, answers, and stops at a signal.
func serveModel(s settings, errOut io.Writer) error {
	started := time.Now()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	log := slog.New(slog.NewTextHandler(errOut, nil))

	listener, monitor, err := listen(s)
	if err != nil {
		return err
	}
	m := &s.model
	m.Log, m.KeepAwake = log, keepAwake(log)
	options := api.Options{
		ModelID: m.ModelID, Revision: m.Revision, Version: version, LaunchID: s.launchID, PID: os.Getpid(),
		Started: started,
		Key:     s.key, OriginKey: s.originKey, AllowHosts: s.allowHosts, AllowOrigins: s.allowOrigins,
		BodyBytes: bodyBytes, KeepAlive: keepAlive, Now: time.Now, Log: log,
		Machine: machineNow, LaunchFile: s.launchFile,
	}
	// while loading: /health and the monitor's page alone
	listeners := host.NewListeners(api.New(options), listener, monitor, log)
	defer listeners.Cut()

	h, err := openUnlessStopped(*m, signals)
	if h == nil {
		return err
	}
	ctx, cut := context.WithCancel(context.Background())
	defer cut()
	if name := os.Getenv(logVariable); name != "" {
		go boundLog(ctx, name, logLookEvery, logLimitBytes)
	}
	ran := make(chan error, 1)
	go func() { ran <- h.Run(ctx) }()
	listeners.Serve(api.New(h.Answers(options)))
	key := h.Key()
	log.Info("loaded", "model", m.ModelID, "device", key.Device, "numerics", key.Numerics, "kv", key.KVFormat,
		"window_tokens", h.Engine().WindowTokens(), "parallel", m.Parallel, "took",
		time.Since(started).Round(time.Millisecond))
	for _, note := range h.Notes() {
		log.Warn(note)
	}
	if monitor != nil {
		fmt.Fprintf(errOut, "slipway-server: monitor at %s/monitor\n", urlOf(monitor.Addr()))
	}
	fmt.Fprintf(errOut, "slipway-server: ready at %s/v1\n", urlOf(listener.Addr()))

	select {
	case err = <-ran:
		err = &failure{exitBug, fmt.Sprintf("the server stopped itself: %v", err)}
	case received := <-signals:
		log.Info("stopping", "signal", received.String())
		stop(h.Engine(), cut, ran, signals, log)
		err = nil
	}
	listeners.Close(closePatience)
	h.Close(cachePatience)
	return err
}

// listen takes the address of the API, and that of the monitor where it is wanted.
func listen(s settings) (listener, monitor net.Listener, err error) {
	if listener, err = net.Listen("tcp", s.addr.String()); err != nil {
		return nil, nil, &failure{
			exitAddress, fmt.Sprintf("%s cannot be opened: %v; stop what listens there, or choose another --port",
				s.addr, cause(err))}
	}
	if s.monitor < 0 {
		return listener, nil, nil
	}
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.monitor))
	if monitor, err = net.Listen("tcp", at); err != nil {
		listener.Close()
		return nil, nil, &failure{
			exitAddress, fmt.Sprintf("%s, for the monitor, cannot be opened: %v; stop what listens there, or choose "+
				"another --monitor-port", at, cause(err))}
	}
	return listener, monitor, nil
}

// openUnlessStopped opens the model; a signal meanwhile ends that at once, with neither a model nor an error.
func openUnlessStopped(s host.Settings, signals <-chan os.Signal) (*host.Host, error) {
	type result struct {
		host *host.Host
		err  error
	}
	done := make(chan result, 1)
	go func() {
		h, err := host.Open(s)
		done <- result{h, err}
	}()
	select {
	case <-signals:
		return nil, nil
	case r := <-done:
		return r.host, r.err
	}
}

// stop lets replies end, then ends them; a second signal ends them at once.
func stop(engine *serve.Engine, cut func(), ran <-chan error, signals <-chan os.Signal, log *slog.Logger) {
	engine.Drain()
	select {
	case <-ran:
		return
	case <-signals:
	case <-time.After(finishPatience):
	}
	status := engine.Status()
	log.Warn("ending what still runs", "active", status.Active, "queued", status.Queued)
	cut()
	select {
	case <-ran:
	case <-time.After(cutPatience):
	}
}

// cause is the system's own words, without Go's address and operation in front.
func cause(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}
