// Package launch runs our own server's process: it starts it in a session of its own, calls it ready only when /health
// names our launch id, stops it by its identity and never by a bare pid, and explains who holds a port.
//
// What is below the home: run/server.json says which process was started with what, run/server.lock is held by the
// living server itself (it inherits the open file), so that a launcher that was killed between starting the server and
// noting it still finds it, and logs/server.log is the server's output.
package launch
