#!/usr/bin/env bash
# Makes the lock files from pyproject.toml: every package with its version and the hashes of its files, for every Python and system that
# ackproof runs on. Versions that are locked already stay, unless pyproject.toml asks for others: name packages to raise them, or --upgrade for all.
#   scripts/lock.sh                      after pyproject.toml changed
#   scripts/lock.sh --upgrade            to have the newest of everything
#   scripts/lock.sh --upgrade-package numpy
set -euo pipefail
cd "$(dirname "$0")/.."
uv=uv
[ ! -x .venv/bin/uv ] || uv=.venv/bin/uv
lock() { # file options...
    local file=$1
    shift
    "$uv" pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
        --output-file "$file" "$@"
}
lock requirements.lock "$@"
lock requirements-dev.lock --group dev --constraints requirements.lock "$@"
