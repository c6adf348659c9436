"""A script in the place of Java, as Kafka's storage tool: it writes a formatted directory in a chosen form."""

from collections.abc import Callable
from pathlib import Path

import pytest

#: "4.3" and "4.4" are the forms of those releases, "no room" fails as a full disk makes it fail, and anything else is
#: the name of the one file that it writes beside meta.properties. A file holds the options that made it.
SCRIPT = """#!/bin/sh
while [ "$1" != -c ]; do shift; done
data=$(sed -n s/^log.dirs=//p "$2"); shift 2
form=$(cat "${0%/bin/java}/form")
[ "$form" != "no room" ] || { echo "java.io.IOException: No space left on device"; exit 1; }
mkdir -p "$data/__cluster_metadata-0" && touch "$data/meta.properties"
log=$data/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint
case "$form" in
4.3) printf "features $*" > "$data/bootstrap.checkpoint"
    case "$*" in --initial-controllers*) printf "voters $2" > "$log" ;; esac ;;
4.4) printf "all $*" > "$log" ;;
*) touch "$data/$form" ;;
esac
"""


def stand_in_tool(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], object]:
    """Puts the script in the place of the Java in ``home``; the answer chooses its form."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(SCRIPT)
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    return (home / "form").write_text
