#!/usr/bin/env bash
# The long loops: the same tests with many more rounds (kill points, random faults, fuzzing).
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 SLIPWAY_SOAK=1
go test -count=1 -timeout 4h ./...
# Every fuzz target of the repository for a minute each.
for package in $(go list ./...); do
  for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
    echo "== fuzz $package $target"; go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZ_SECONDS:-60}s" "$package"
  done
done
