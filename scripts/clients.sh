#!/usr/bin/env bash
# Real agents do a turn with a tool call and a follow-up each, against a scripted model. test/clients/package-lock.json
# pins them; one that cannot be installed fails. On Linux they run in a network that has loopback alone.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 GOFLAGS=-mod=readonly

(
  cd test/clients
  # Not npm ci: the lock names no program for machines that the registry had none for when it was written.
  npm install --no-save --ignore-scripts --no-audit --no-fund
  # These two put the program of this machine in its place.
  node node_modules/@anthropic-ai/claude-code/install.cjs
  node node_modules/opencode-ai/postinstall.mjs
)
go test -c -o /dev/null ./engine/api # what it needs is fetched before the network is gone
alone=()
if unshare -rn true 2>/dev/null; then
  alone=(unshare -rn sh -c '{ ip link set lo up || ifconfig lo up; } 2>/dev/null; exec "$@"' sh)
fi
SLIPWAY_CLIENTS="$PWD/test/clients/node_modules" "${alone[@]}" go test -count=1 -v -timeout 20m -run TestRealAgents ./engine/api
