#!/usr/bin/env bash
# Runs ackproof on any machine of any continuous integration:
#   ackproof/run.sh install | kafka | pull-request | nightly | releases | resume NIGHT | stop | heal
#
#   ACKPROOF          what pip installs: a wheel's file, a directory, or "ackproof==0.3.0" of an index that is yours (default: the wheel
#                     beside this, or the clone that this lies in)
#   ACKPROOF_VENV     where to (default: .ackproof-venv)
#   ACKPROOF_LOCK     what it depends on, each file by its hash, installed first; or "none" (default: requirements.lock beside this, or of
#                     the clone)
#   ACKPROOF_KAFKA    a release of Apache Kafka for the nightly run, "newest", or "none" (default: newest)
#   ACKPROOF_FOR      how long a night is (default: 4h)
#   ACKPROOF_NIGHTS   verdicts of the nights, kept from one to the next (default: ackproof-nights)
#   ACKPROOF_RESULTS  everything else, to look at when something was found (default: ackproof-results)
#   ACKPROOF_SUMMARY  a file to which a table in Markdown is appended (default: $GITHUB_STEP_SUMMARY, or none)
#
# It needs Python 3.11, Java 17, xz and flock, and Maven to install Kafka.
# `nightly` heals first what a night left that was killed. `resume` goes on with such a night, for the rest of its time; `heal` does no more.
# TERM, INT and HUP end a night in order, within half a minute: it is judged and kept as far as it came, and nothing of it lives on.
# `stop` ends one so that goes on in these results, for those whose signals do not reach it, waits for its end, and heals.
#
# Exit codes are ackproof's: 0 nothing broken, 1 a promise broken, or worse than the night before, 2 unknown, 64 a plan is wrong,
# 69 Kafka cannot be fetched, 70 ackproof itself failed, 130 stopped, and nothing broken so far.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
venv=${ACKPROOF_VENV:-.ackproof-venv}
nights=${ACKPROOF_NIGHTS:-ackproof-nights}
results=${ACKPROOF_RESULTS:-ackproof-results}
summary=${ACKPROOF_SUMMARY:-${GITHUB_STEP_SUMMARY:-/dev/null}}
signals=0 early= conducted=
# Without a trap, bash ignores Ctrl-C if the program that it waits for ends as usual.
trap 'exit 130' INT
ackproof() { "$venv/bin/ackproof" "$@"; }

# A directory that git leaves alone.
own() { # directory
    mkdir -p "$1"
    [ -e "$1/.gitignore" ] || echo '*' > "$1/.gitignore"
}

install_ackproof() {
    local what=${ACKPROOF:-} lock=$here/requirements.lock program
    if [ -e "$here/../harness/plan/starters.py" ]; then
        lock=$here/../requirements.lock
        what=${what:-$here/..}
    fi
    what=${what:-$(printf '%s' "$here"/ackproof-*.whl)}
    case $what in
        *'*'*) echo "put a wheel of ackproof beside $0 (pip wheel --no-deps --wheel-dir $here CLONE), or set ACKPROOF" >&2; exit 64 ;;
    esac
    for program in xz flock; do
        command -v "$program" > /dev/null || { echo "$program is missing: install the packages xz-utils and util-linux" >&2; exit 70; }
    done
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    own "$venv"
    lock=${ACKPROOF_LOCK:-$lock}
    [ "$lock" = none ] || "$venv/bin/python" -m pip install --quiet --require-hashes --requirement "$lock"
    "$venv/bin/python" -m pip install --quiet "$what"
    ackproof --version
    ackproof doctor
}

install_kafka() {
    case ${ACKPROOF_KAFKA:-newest} in
        none) echo "Apache Kafka is not installed: ACKPROOF_KAFKA=none" ;;
        newest) ackproof kafka install ;;
        *) ackproof kafka install "$ACKPROOF_KAFKA" ;;
    esac
}

# From here on no other run of this script works in the results: what a living night does is not what a dead one left.
# ackproof inherits it, so that a night lives as long as ackproof does, whatever became of its script.
alone() { # seconds to wait for that
    own "$results"
    exec 9>> "$results/.lock"
    flock --timeout "$1" 9 || { echo "another $0 works in $results; wait for its end, or end it with $0 stop" >&2; exit 70; }
    echo "$$" > "$results/.lock"
}

# Ask the script that works in the results to end in order, or ackproof itself where the script was killed.
ask_to_stop() {
    local pid
    [ -e "$results/.lock" ] && ! flock --nonblock "$results/.lock" true || return 0
    while read -r pid; do
        ! kill -TERM "$pid" 2> /dev/null || return 0
    done < "$results/.lock"
}

# Run ackproof beside this script, which hears signals at once and waits all the same; the exit code is ackproof's.
conduct() { # arguments...
    local code= heard
    [ "$signals" = 0 ] || { trap '' TERM INT HUP; return 130; }
    { exec 8< <(attend "$@"); } 7>&1
    read -r conducted <&8 || true
    echo "$conducted" >> "$results/.lock"
    [ -z "$early" ] || kill -TERM "$conducted" 2> /dev/null || true
    while heard=$signals; wait "$!" || true; [ "$heard" != "$signals" ]; do :; done
    # The rest takes seconds, and a signal to the whole group must not end the programs that do it.
    trap '' TERM INT HUP
    read -r code <&8 || code=$((signals ? 130 : 70))
    exec 8<&-
    # ackproof was asked to end before it could hear that: it has not begun.
    [ "$signals" = 0 ] || [ "$code" != 143 ] || code=130
    return "$code"
}

# Start ackproof, print its process number, and at its end its exit code. A shell with traps cannot do that: bash loses the exit code of
# a child if a signal that has a trap interrupts `wait` just when the child has ended. So signals are ignored here.
attend() { # arguments...
    local code=0
    trap '' TERM INT HUP
    # In a process group of its own: `timeout` and terminals signal the whole group, and who is asked twice ends in no order.
    set -m
    (trap - TERM INT HUP; echo "$BASHPID"; exec "$venv/bin/ackproof" "$@" < /dev/null >&7 7>&-) &
    set +m
    wait "$!" || code=$?
    echo "$code"
}

# What the traps do: the first signal is passed on to ackproof, or keeps it from being started.
pass_on() {
    # Counting and comparing is one step, because another signal may come between two.
    [ "$((signals++))" -gt 0 ] || kill -TERM "$conducted" 2> /dev/null || early=yes
}

# The table of a campaign or a soak, for the job's page.
show() { # directory
    [ ! -e "$1/matrix.md" ] || cat "$1/matrix.md" >> "$summary"
}

pull_request() {
    local code=0 directory
    directory=$results/$(date -u +%Y-%m-%dT%H%M%S)
    alone 0
    trap pass_on TERM INT HUP
    ackproof plan "$here/pull-request.toml" --explain
    conduct campaign "$here/pull-request.toml" --out "$directory" || code=$?
    show "$directory"
    return "$code"
}

# The newest night before this one that was not stopped, if there is any.
night_before() { # tonight
    local newest= night
    for night in "$nights"/*/; do
        [ -e "$night/matrix.json" ] && [[ $(basename "$night") < $1 ]] || continue
        grep --quiet --no-messages '"status": "interrupted"' "$night/campaign.json" || newest=${night%/}
    done
    printf '%s' "$newest"
}

# What the next nights need of this one, if it judged anything: a few megabytes, and the trend of all.
keep_night() { # tonight
    local from=$results/$1 to=$nights/$1 file
    [ -s "$from/verdicts.jsonl" ] || return 0
    own "$nights"
    mkdir -p "$to"
    for file in plan.toml campaign.json matrix.json night.json; do
        [ ! -e "$from/$file" ] || cp "$from/$file" "$to/"
    done
    xz --stdout "$from/verdicts.jsonl" > "$to/verdicts.jsonl.xz"
    [ ! -e "$from/nights.html" ] || cp "$from/nights.html" "$nights/"
}

# A night from healing what dead ones left to the comparison with the one before.
night() { # tonight arguments-of-soak...
    local tonight=$1 code=0 compared=0 healed=0 before
    shift
    trap pass_on TERM INT HUP
    ackproof heal "$results" || healed=$?
    conduct soak "$@" || code=$?
    keep_night "$tonight"
    show "$results/$tonight"
    # A soak that was killed, or failed, may have left something; every other one has undone it.
    [ "$code" -lt 70 ] || ackproof heal "$results" || healed=$?
    before=$(night_before "$tonight")
    # What was stopped did less than the night before, and the person who stopped it does not wait for long.
    if [ "$signals" = 0 ] && [ -n "$before" ] && [ -e "$results/$tonight/matrix.json" ]; then
        ackproof compare "$before" "$results/$tonight" | tee "$results/$tonight/compared.txt" || compared=$?
        { echo '```'; cat "$results/$tonight/compared.txt"; echo '```'; } >> "$summary"
    fi
    # A promise that is broken tonight outweighs what is not known.
    [ "$code" = 0 ] || return "$code"
    [ "$compared" = 0 ] || return "$compared"
    return "$healed"
}

nightly() {
    local tonight earlier
    tonight=$(date -u +%Y-%m-%dT%H%M%S)
    earlier=$(compgen -G "$nights/*/verdicts.jsonl.xz" || true)
    alone 0
    # Every night draws seeds of its own, so it tries schedules that were never tried.
    night "$tonight" "$here/nightly.toml" --out "$results/$tonight" --for "${ACKPROOF_FOR:-4h}" ${earlier:+--nights "$nights"}
}

resume() { # directory of a night
    local name
    name=$(basename "$1")
    alone 0
    # What was kept of it when it was stopped is no earlier night; all of it is kept at its end.
    [ ! -s "$results/$name/verdicts.jsonl" ] || rm -rf "${nights:?}/$name"
    night "$name" --resume "$results/$name"
}

case ${1:-}/$# in
    install/1) install_ackproof ;;
    kafka/1) install_kafka ;;
    pull-request/1) pull_request ;;
    nightly/1) nightly ;;
    releases/1) ackproof release --newest | tee -a "$summary" ;;
    resume/2) resume "$2" ;;
    # A night that was stopped just now needs half a minute.
    heal/1) alone 60; ackproof heal "$results" ;;
    stop/1) ask_to_stop; alone 60; ackproof heal "$results" ;;
    *) sed '1d; /^#/!Q; s/^# \{0,1\}//' "$0"; exit 64 ;;
esac
