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
	"slipway/engine/serve"
)

func serveVerb(errOut io.Writer) *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "load a model and answer requests until told to stop",
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

// Bounds of a stop. Together with what surrounds them a stop stays under ten seconds.
const (
	finishPatience = 8 * time.Second // for replies under way to end by themselves
	cutPatience    = time.Second     // for the pass under way, after which replies are told that they were cut
	closePatience  = 300 * time.Millisecond
	cachePatience  = 500 * time.Millisecond // for the disk cache to write what it has: a point of a large model takes 0.2 s
)

// keepAlive is well under the shortest header time-out met in clients (30 s).
const keepAlive = 10 * time.Second

// serveModel claims the address, loads, answers, and stops when told to.
func serveModel(s settings, errOut io.Writer) error {
	started := time.Now()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	log := slog.New(slog.NewTextHandler(errOut, nil))

	listener, err := net.Listen("tcp", s.addr.String())
	if err != nil {
		return &failure{exitAddress, fmt.Sprintf("%s cannot be had: %v; stop what listens there, or choose another --port", s.addr, cause(err))}
	}
	var monitor net.Listener
	if s.monitor >= 0 {
		at := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.monitor))
		if monitor, err = net.Listen("tcp", at); err != nil {
			listener.Close()
			return &failure{exitAddress, fmt.Sprintf("%s, for the monitor, cannot be had: %v; stop what listens there, or choose another --monitor-port", at, cause(err))}
		}
	}
	options := api.Options{
		ModelID: s.modelID, Revision: s.revision, Version: version, LaunchID: s.launchID, PID: os.Getpid(), Started: started,
		Key: s.key, AllowHosts: s.allowHosts, BodyBytes: s.bodyBytes, KeepAlive: keepAlive, Now: time.Now, Log: log,
		Machine: machineNow, LaunchFile: s.launchFile,
	}
	door := newDoor(api.New(options), listener, monitor, log) // while loading: /health and the monitor's page alone
	defer door.cut()

	loaded, err := loadUnlessTold(s, log, signals)
	if loaded == nil {
		return err
	}
	engine, err := loaded.engine(s, &options, log)
	var refused *failure
	if errors.As(err, &refused) {
		return refused
	}
	if err != nil {
		return &failure{exitModel, fmt.Sprintf("the model in %s cannot be served: %v", s.modelDir, err)}
	}
	ctx, cut := context.WithCancel(context.Background())
	defer cut()
	if name := os.Getenv(logVariable); name != "" {
		go boundLog(ctx, name, logLookEvery, logLimitBytes)
	}
	ran := make(chan error, 1)
	go func() { ran <- engine.Run(ctx) }()
	go watchMemory(ctx, engine, log)
	door.open(api.New(options))
	log.Info("loaded", "model", s.modelID, "device", loaded.device.Name(), "numerics", loaded.device.Numerics(), "kv", loaded.key.KVFormat, "window_tokens", engine.WindowTokens(), "parallel", s.parallel,
		"took", time.Since(started).Round(time.Millisecond))
	for _, note := range loaded.notes {
		log.Warn(note)
	}
	if monitor != nil {
		fmt.Fprintf(errOut, "slipway-server: monitor at %s/monitor\n", urlOf(monitor.Addr()))
	}
	fmt.Fprintf(errOut, "slipway-server: ready at %s/v1\n", urlOf(listener.Addr()))

	select {
	case err := <-ran:
		door.close()
		loaded.closeCache(cachePatience)
		return &failure{exitBug, fmt.Sprintf("the server stopped itself: %v", err)}
	case received := <-signals:
		log.Info("stopping", "signal", received.String())
		stop(engine, cut, ran, signals, log)
		door.close()
		loaded.closeCache(cachePatience)
		return nil
	}
}

// loadUnlessTold loads the model; a signal meanwhile ends that at once, with neither a model nor an error.
func loadUnlessTold(s settings, log *slog.Logger, signals <-chan os.Signal) (*loaded, error) {
	type result struct {
		loaded *loaded
		err    error
	}
	done := make(chan result, 1)
	go func() {
		l, err := load(s, log)
		done <- result{l, err}
	}()
	select {
	case <-signals:
		return nil, nil
	case r := <-done:
		var refused *failure
		switch {
		case r.err == nil:
			return r.loaded, nil
		case errors.As(r.err, &refused):
			return nil, refused
		}
		return nil, &failure{exitModel, fmt.Sprintf("the model in %s cannot be loaded: %v", s.modelDir, r.err)}
	}
}

// stop lets replies end, then cuts them; a second signal cuts at once.
func stop(engine *serve.Engine, cut func(), ran <-chan error, signals <-chan os.Signal, log *slog.Logger) {
	engine.Drain()
	select {
	case <-ran:
		return
	case <-signals:
	case <-time.After(finishPatience):
	}
	status := engine.Status()
	log.Warn("cutting what still runs", "active", status.Active, "queued", status.Queued)
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
