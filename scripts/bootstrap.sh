#!/usr/bin/env bash
# Makes .venv with ackproof in it, and sees to Java and (with the argument "test") the programs that the tests drive.
# Safe to repeat; does nothing that is done already. Installs system packages only through apt, as root or with sudo.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv
refreshed=
say() { printf '%s\n' "$*" >&2; }

apt_install() { # packages... ; false where apt or the right to use it is missing
    command -v apt-get >/dev/null || return 1
    local as=()
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null && sudo -n true 2>/dev/null || return 1
        as=(sudo -n)
    fi
    # Once a day. The mark lies in the checkout: in a directory that others share, a link of its name would lead root anywhere.
    if [ -z "$refreshed" ] && [ -z "$(find "$venv/.apt-updated" -mtime -1 2>/dev/null)" ]; then
        say "refreshing the package lists"
        "${as[@]}" apt-get update -qq >&2 || return 1
        refreshed=yes
        [ ! -d "$venv" ] || touch "$venv/.apt-updated"
    fi
    say "installing $*"
    "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
}

find_python() {
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$name" >/dev/null && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
            echo "$name"
            return
        fi
    done
    say "ackproof needs Python 3.11 or later: install the package python3 of a current Debian or Ubuntu."
    exit 70
}

make_venv() {
    local python
    python=$(find_python)
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        apt_install python3-venv || { say "Python's venv module is missing: install the package python3-venv."; exit 70; }
    fi
    say "making $venv with $("$python" --version)"
    "$python" -m venv "$venv"
}

java_is_usable() {
    local java=${JAVA_HOME:+$JAVA_HOME/bin/}java
    command -v "$java" >/dev/null && "$java" --list-modules 2>/dev/null | grep -qE '^jdk\.incubator\.vector@(1[7-9]|[2-9][0-9])'
}

see_to_java() {
    java_is_usable && return
    for package in openjdk-21-jre-headless openjdk-17-jre-headless default-jre-headless; do
        apt_install "$package" && java_is_usable && return
    done
    say "PySpark needs Java 17 or later with the module jdk.incubator.vector: install the package openjdk-17-jre-headless"
    say "(or openjdk-21-jre-headless), or point JAVA_HOME at such a Java."
    exit 70
}

see_to_test_programs() { # program:package
    local missing=()
    for pair in kcat:kcat ip:iproute2 nft:nftables mvn:maven mkfs.ext4:e2fsprogs \
        sshd:openssh-server ssh-keygen:openssh-client sudo:sudo faketime:faketime; do
        command -v "${pair%%:*}" >/dev/null || [ -x "/usr/sbin/${pair%%:*}" ] || missing+=("${pair##*:}")
    done
    [ ${#missing[@]} -eq 0 ] && return
    apt_install "${missing[@]}" || { say "the tests drive these packages, please install them: ${missing[*]}"; exit 70; }
}

see_to_browser() { # tests of the report open it; a browser of Debian or of the machine, else the one that the driver brings
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        command -v "$name" >/dev/null && return
    done
    apt_install chromium && command -v chromium >/dev/null && return
    "$venv/bin/playwright" install chromium-headless-shell >&2 || say "tests that open the report in a browser are skipped: install chromium"
}

# Exactly what was tested, each file by its hash. The lock is for every Python from 3.11 on; scripts/lock.sh makes it.
install_ackproof() {
    local stamp=$venv/.installed lock=requirements-dev.lock
    [ -e "$stamp" ] && [ "$stamp" -nt pyproject.toml ] && [ "$stamp" -nt "$lock" ] && return
    say "installing ackproof and what it needs into $venv (about half a minute)"
    sed -n '/^uv==/,/[^\\]$/p' "$lock" | pip_install --require-hashes --requirement /dev/stdin
    # uv needs half of pip's processor time, as it compiles no module before its first import. It reads no configuration of pip.
    if ! "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --no-deps --require-hashes --requirement "$lock"; then
        say "uv could not install them; pip tries, which takes twice as long"
        pip_install --require-hashes --requirement "$lock"
    fi
    pip_install --no-deps --no-build-isolation --editable .
    touch "$stamp"
}

pip_install() { "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }

[ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1 || make_venv
see_to_java # before the downloads: who must ask for a package should not wait for them first
install_ackproof
[ "${1:-}" = test ] && { see_to_test_programs; see_to_browser; }
exit 0
