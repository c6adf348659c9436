#!/usr/bin/env bash
# Runs ackproof on any machine of any continuous integration: ackproof/run.sh install | kafka | pull-request | nightly
#
#   ACKPROOF          what pip installs: a wheel's file, a directory, or "ackproof==0.2.0" of an index that is yours (default: the wheel beside this)
#   ACKPROOF_VENV     where to (default: .ackproof-venv)
#   ACKPROOF_LOCK     what it depends on, each file by its hash, installed first; or "none" (default: requirements.lock beside this)
#   ACKPROOF_KAFKA    a release of Apache Kafka for the nightly run, "newest", or "none" (default: newest)
#   ACKPROOF_FOR      how long a night is (default: 4h)
#   ACKPROOF_NIGHTS   verdicts of the nights, kept from one to the next (default: ackproof-nights)
#   ACKPROOF_RESULTS  everything else, to look at when something was found (default: ackproof-results)
#   ACKPROOF_SUMMARY  a file that is given a table in Markdown (default: $GITHUB_STEP_SUMMARY, or none)
#
# Exit codes are ackproof's: 0 nothing broken, 1 a promise broken, or worse than the night before, 2 unknown, 64 a plan is wrong,
# 69 Kafka cannot be fetched, 70 ackproof itself failed.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
venv=${ACKPROOF_VENV:-.ackproof-venv}
nights=${ACKPROOF_NIGHTS:-ackproof-nights}
results=${ACKPROOF_RESULTS:-ackproof-results}
summary=${ACKPROOF_SUMMARY:-${GITHUB_STEP_SUMMARY:-/dev/null}}
ackproof() { "$venv/bin/ackproof" "$@"; }

install_ackproof() {
    local what=${ACKPROOF:-$(printf '%s' "$here"/ackproof-*.whl)}
    case $what in
        *'*'*) echo "put a wheel of ackproof beside $0 (pip wheel --no-deps --wheel-dir $here CLONE), or set ACKPROOF" >&2; exit 64 ;;
    esac
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    local lock=${ACKPROOF_LOCK:-$here/requirements.lock}
    [ "$lock" = none ] || "$venv/bin/python" -m pip install --quiet --require-hashes --requirement "$lock"
    "$venv/bin/python" -m pip install --quiet "$what"
    ackproof --version
    ackproof doctor
}

install_kafka() {
    case ${ACKPROOF_KAFKA:-newest} in
        none) ;;
        newest) ackproof kafka install ;;
        *) ackproof kafka install "$ACKPROOF_KAFKA" ;;
    esac
}

# A campaign or a soak into a directory, and its table for the job's page; the exit code is theirs.
perform() { # campaign|soak plan directory options...
    local command=$1 plan=$2 directory=$3 code=0
    shift 3
    ackproof plan "$plan" --explain
    ackproof "$command" "$plan" --out "$directory" "$@" || code=$?
    [ ! -e "$directory/matrix.md" ] || cat "$directory/matrix.md" >> "$summary"
    return "$code"
}

# The newest night before this one, if there is any.
night_before() { # tonight
    local found=
    for night in "$nights"/*/; do
        [ ! -e "$night/matrix.json" ] || [ "$(basename "$night")" = "$1" ] || found=${night%/}
    done
    printf '%s' "$found"
}

# What the next nights need of this one: a few megabytes, whatever it did.
keep_night() { # directory tonight
    mkdir -p "$nights/$2"
    for file in plan.toml campaign.json matrix.json night.json; do
        [ ! -e "$1/$file" ] || cp "$1/$file" "$nights/$2/"
    done
    [ ! -e "$1/verdicts.jsonl" ] || xz --stdout "$1/verdicts.jsonl" > "$nights/$2/verdicts.jsonl.xz"
}

nightly() {
    local tonight code=0 compared=0 before
    tonight=$(date -u +%Y-%m-%dT%H%M%S)
    before=$(night_before "$tonight")
    # Every night draws seeds of its own, so it tries schedules that were never tried.
    perform soak "$here/nightly.toml" "$results/$tonight" --for "${ACKPROOF_FOR:-4h}" ${before:+--nights "$nights"} || code=$?
    keep_night "$results/$tonight" "$tonight"
    if [ -n "$before" ] && [ -e "$nights/$tonight/matrix.json" ]; then
        ackproof compare "$before" "$nights/$tonight" | tee "$results/$tonight/compared.txt" || compared=$?
        { echo '```'; cat "$results/$tonight/compared.txt"; echo '```'; } >> "$summary"
    fi
    # A promise that is broken tonight outweighs what is not known.
    [ "$code" = 0 ] || return "$code"
    return "$compared"
}

case ${1:-} in
    install) install_ackproof ;;
    kafka) install_kafka ;;
    pull-request) perform campaign "$here/pull-request.toml" "$results/$(date -u +%Y-%m-%dT%H%M%S)" ;;
    nightly) nightly ;;
    *) sed -n '2,14p' "$0"; exit 64 ;;
esac
