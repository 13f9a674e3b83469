#!/usr/bin/env bash
# Static analysis of everything, for Linux and for the Mac: staticcheck, and functions that nothing calls (deadcode).
# The versions are pinned in scripts/tools/go.mod.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
bin=$(mktemp -d); trap 'rm -rf "$bin"' EXIT
(cd scripts/tools && go build -o "$bin/" honnef.co/go/tools/cmd/staticcheck golang.org/x/tools/cmd/deadcode)

status=0
for target in linux/amd64 darwin/arm64; do
  export GOOS=${target%/*} GOARCH=${target#*/}
  "$bin/staticcheck" ./... || { echo "staticcheck for $target: fix the lines above"; status=1; }
  "$bin/deadcode" -test ./... | sort > "$bin/dead-$GOOS"
done

# A function that only the other system calls is not dead: what both systems report is, and what is in a file of one system.
# Nor is one that a module under test/ calls, which deadcode does not see.
dead=$(comm -12 "$bin/dead-linux" "$bin/dead-darwin"; grep -h -E '_(linux|darwin)\.go' "$bin"/dead-* || true)
while read -r line; do
  name=${line##*[ .]}
  [ -z "$name" ] || git grep -qw "$name" -- 'test/*/*.go' || { echo "$line"; status=2; }
done <<< "$dead"
[ $status -ne 2 ] || echo "deadcode: delete what nothing calls, or call it"
exit $status
