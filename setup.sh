#!/usr/bin/env bash
# Installs what the build needs and this machine lacks; says in one line why. Does nothing when nothing is missing.
set -euo pipefail
cd "$(dirname "$0")"

channel=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)

if ! command -v rustup >/dev/null; then
  echo "setup: rustup is missing; install it from https://rustup.rs and run this again" >&2
  exit 1
fi
if ! rustup toolchain list | grep -q "^$channel"; then
  echo "setup: installing Rust $channel, the version that this project is pinned to"
  rustup toolchain install "$channel" --profile minimal >/dev/null
fi
installed=$(rustup component list --toolchain "$channel" --installed)
for component in clippy rustfmt; do
  if ! grep -q "^$component" <<<"$installed"; then
    echo "setup: installing $component, which make verify runs"
    rustup component add "$component" --toolchain "$channel" >/dev/null
  fi
done
if ! rustup target list --toolchain "$channel" --installed | grep -q '^wasm32-unknown-unknown$'; then
  echo "setup: installing the target wasm32-unknown-unknown, which the component is built for"
  rustup target add wasm32-unknown-unknown --toolchain "$channel" >/dev/null
fi

# command → Debian package → reason
missing=()
compiles() { echo 'int main(void) { return 0; }' | cc -x c - -o /dev/null 2>/dev/null; }
need() {
  if ! command -v "$1" >/dev/null; then
    echo "setup: installing $2, $3"
    missing+=("$2")
  fi
}
if ! compiles; then
  echo "setup: installing libc6-dev, the headers and start files that gcc links programs with"
  missing+=(libc6-dev)
fi
need cc gcc "which links the programs and compiles the TLS library and the embedded store"
need curl curl "which the README's calls are made with"
if [ ${#missing[@]} -gt 0 ]; then
  run=""
  if [ "$(id -u)" != 0 ]; then run=sudo; fi
  $run apt-get update -qq >/dev/null
  DEBIAN_FRONTEND=noninteractive $run apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
