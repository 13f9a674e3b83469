#!/usr/bin/env bash
# Everything that must hold. Each step prints its name, then how long it took and how much processor time (user and
# system, with all programs that it started and waited for). The static analysis and the modules under test/ run beside
# the tests of the main module, which often wait; their output follows that of the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
# -trimpath: packages have the same key in the build cache in every clone, and the same as in what slipway itself builds.
# -s: the tests link some forty programs, and linking without symbols takes half the time.
export CGO_ENABLED=0 GOFLAGS="-mod=readonly -trimpath -ldflags=-s"
exec 2>&1 # keeps a step's name and its times in order
TIMEFORMAT="-- %0lR, processor time: %0U s user, %0S s system"

step() { printf '\n== %s\n' "$1"; time "${@:2}"; }

format() { local bad; bad=$(git ls-files '*.go' | xargs gofmt -l); [ -z "$bad" ] || { echo "gofmt wants: $bad"; return 1; }; }

for_the_mac() {
  export GOOS=darwin GOARCH=arm64
  go vet ./...
  go build -o /dev/null ./cmd/slipway
  go build -o /dev/null ./cmd/slipway-server
}

generator() { cd engine/device/cpu/kernels/gen; go mod download; go vet ./...; }

# The packages that take longest begin first: two that wait most of their time beside two that compute. vet has run, so
# that go test need not.
tests() {
  go test -vet=off -p 4 -parallel 6 -json -timeout 20m ./cmd/slipway ./installer/neighbor ./metal ./engine/host \
    ./cmd/slipway-server ./installer/hub ./engine/model ./test/judged ./... | go run ./scripts/testreport
}

# Never from the cache: the server that they start is no part of their module, so that go does not see that it changed.
clients() {
  cd "$1"; go vet ./...
  go test -vet=off -count=1 -json -timeout 10m ./... | (cd ../.. && go run ./scripts/testreport)
}

beside_the_tests() {
  step "vet and build for the Mac" in_a_shell for_the_mac
  step "static analysis" ./scripts/lint.sh
  step "modules of the assembly generator" in_a_shell generator
  for module in test/*/go.mod; do
    step "tests with other people's clients: ${module%/go.mod}" in_a_shell clients "${module%/go.mod}"
  done
}

# in_a_shell keeps a step's folder and variables to itself; its first failure ends it.
in_a_shell() { (set -e; "$@"); }

step "format" format
step "vet" go vet ./...

beside=$(mktemp)
beside_the_tests > "$beside" 2>&1 &
failed=0
step "tests" tests || failed=1
wait $! || failed=1
cat "$beside"

times > "$beside" # its second line is that of the programs; in a pipe it would be that of nothing
read -r user system < <(tail -n 1 "$beside"); rm "$beside"
printf '\n== all: %d min %d s, processor time: %s user, %s system\n' $((SECONDS / 60)) $((SECONDS % 60)) "$user" "$system"
exit $failed
