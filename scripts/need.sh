#!/usr/bin/env bash
# Installs what the tests need, on a bare Debian (as root or with passwordless sudo) or macOS (with Homebrew) machine.
# Nothing is installed that is there already. Go itself is the one thing that must be present.
set -euo pipefail

want_go=1.26
say() { printf '%s\n' "$*" >&2; }

command -v go >/dev/null || { say "Go is not installed. Install Go $want_go or newer from your system's packages or https://go.dev/dl, then run this again."; exit 9; }

# command -> Debian package : Homebrew package
needs=(
  "git:git:git"
  "curl:curl:curl"
  "tmux:tmux:tmux"
  "script:bsdutils:"
  "openssl:openssl:openssl"
  "npm:npm:node"
  "chromium:chromium:"
  "clang++-22:clang-22:"
)
# Debian packages without a command of their own: clang's run-time library and the headers of C and C++, for the Metal
# kernels that the tests compile for the CPU.
libraries=(libclang-rt-22-dev libstdc++-12-dev libc6-dev)
[ "${1:-}" = bench ] && needs+=("aria2c:aria2:aria2")

missing_deb=() missing_brew=()
for n in "${needs[@]}"; do
  IFS=: read -r command deb brew <<<"$n"
  command -v "$command" >/dev/null && continue
  missing_deb+=("$deb")
  [ -n "$brew" ] && missing_brew+=("$brew")
done

case "$(uname -s)" in
Linux)
  if command -v dpkg-query >/dev/null; then
    for library in "${libraries[@]}"; do
      dpkg-query -W -f='${db:Status-Status}' "$library" 2>/dev/null | grep -qx installed || missing_deb+=("$library")
    done
  fi
  [ ${#missing_deb[@]} -eq 0 ] && exit 0
  command -v apt-get >/dev/null || { say "These are missing, and this is no Debian: ${missing_deb[*]}. Install them, then run this again."; exit 9; }
  sudo=(); [ "$(id -u)" -eq 0 ] || sudo=(sudo -n)
  say "installing: ${missing_deb[*]}"
  "${sudo[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing_deb[@]}"
  ;;
Darwin)
  [ ${#missing_brew[@]} -eq 0 ] && exit 0
  command -v brew >/dev/null || { say "These are missing: ${missing_brew[*]}. Install them (Homebrew knows them all), then run this again."; exit 9; }
  brew install "${missing_brew[@]}"
  ;;
esac
