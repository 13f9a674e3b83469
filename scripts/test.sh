#!/usr/bin/env bash
# Everything that must hold. Each step prints its name; the first failure ends the run.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 GOFLAGS=-mod=readonly

step() { printf '\n== %s\n' "$*"; }

step "format";                          bad=$(git ls-files '*.go' | xargs gofmt -l); [ -z "$bad" ] || { echo "gofmt wants: $bad"; exit 1; }
step "vet";                             go vet ./...
step "vet and build for the Mac";       GOOS=darwin GOARCH=arm64 go vet ./... && GOOS=darwin GOARCH=arm64 go build -o /dev/null ./cmd/slipway && GOOS=darwin GOARCH=arm64 go build -o /dev/null ./cmd/slipway-server
step "static analysis";                 ./scripts/lint.sh
step "modules of the assembly generator"; (cd engine/device/cpu/kernels/gen && go mod download && go vet ./...)
# Three packages at a time: the tests of processes and neighbours wait most of their time.
step "tests";                           go test -p 3 -json -timeout 20m ./... | go run ./scripts/testreport
for module in test/*/go.mod; do
  [ -e "$module" ] || continue
  folder=$(dirname "$module")
  step "tests with other people's clients: $folder"; (cd "$folder" && go vet ./... && go test -json -timeout 10m ./...) | go run ./scripts/testreport
done
