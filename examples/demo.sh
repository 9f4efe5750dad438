#!/usr/bin/env bash
# The whole way on one machine: check, profile, recommend and train three emulated devices on real images.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$here/../demo" && cd "$here/../demo"
cp "$here/local-fleet.toml" fleet.toml
run() { printf '\n$ %s\n' "$*"; "$@"; }
run planner check
run planner profile --model cipher --batch-size 16 --data "$here/fashion-mnist" --steps 1000
run planner recommend --metric edp
run planner train --data "$here/fashion-mnist" --evaluate-every 250 --warmup 50
