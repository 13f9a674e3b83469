#!/usr/bin/env bash
# Static analysis of everything, for Linux and for the Mac: staticcheck, and functions that nothing calls (deadcode).
# The versions are pinned in scripts/tools/go.mod.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 GOGC=400 # deadcode: 16 s of processor time instead of 26 s
# Linked programs stay in the build cache.
staticcheck=$(cd scripts/tools && go tool -n staticcheck)
deadcode=$(cd scripts/tools && go tool -n deadcode)
found=$(mktemp -d); trap 'rm -rf "$found"' EXIT

status=0
for target in linux/amd64 darwin/arm64; do
  export GOOS=${target%/*} GOARCH=${target#*/}
  "$staticcheck" ./... || { echo "staticcheck for $target: fix the lines above"; status=1; }
  "$deadcode" -test ./... | sort > "$found/$GOOS"
done

# A function that only the other system calls is not dead: what both systems report is, and what is in a file of one system.
# Nor is one that a module under test/ calls, which deadcode does not see.
dead=$(comm -12 "$found/linux" "$found/darwin"; grep -h -E '_(linux|darwin)\.go' "$found"/* || true)
while read -r line; do
  name=${line##*[ .]}
  [ -z "$name" ] || git grep -qw "$name" -- 'test/*/*.go' || { echo "$line"; status=2; }
done <<< "$dead"
[ $status -ne 2 ] || echo "deadcode: delete what nothing calls, or call it"
exit $status
