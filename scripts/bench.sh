#!/usr/bin/env bash
# Speed and memory. Every figure that needs a baseline measures it in the same run.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
go test -run '^$' -bench . -benchtime "${BENCH_TIME:-2s}" -timeout 2h "${@:-./...}"
