"""Programs that stand in for docker, kubectl, systemctl, iptables and sudo, and do to local processes what these do.

Each knows the words that its model knows, of those that the plans of the project say, and refuses all others. A broker
is a process that sleeps. Machines are servers of OpenSSH on this one.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from harness.worlds.hosts import Ports

#: A node's process is looked at in /proc, where a zombie is dead. What starts one leaves it no variables.
_COMMON = """#!/bin/sh
cd "{state}" || exit 9
pid() {{ cat "$1.pid" 2>/dev/null; }}
state() {{
  s=$(sed 's/.*) //; s/ .*//' "/proc/$(pid "$1")/stat" 2>/dev/null)
  case $s in [ZX] | "") echo exited ;; T) echo paused ;; *) echo running ;; esac
}}
up() {{ env -i setsid sleep 1000 >/dev/null 2>&1 & echo $! >"$1.pid"; }}
signal() {{ kill "-$1" "$(pid "$2")"; }}
known() {{ [ -e "$1.pid" ] || {{ echo "no such thing: $1" >&2; exit 1; }}; }}
is() {{ [ "$(state "$1")" = "$2" ] || {{ echo "$1 is not $2" >&2; exit 1; }}; }}
"""
DOCKER = """
[ ! -e daemon-is-away ] || { echo "Cannot connect to the Docker daemon" >&2; exit 1; }
case "$*" in
  "kill kafka-"?) is "$2" running; signal KILL "$2" ;;
  "stop -t 30 kafka-"?) known "$4"; signal TERM "$4" ;;
  "start kafka-"?) known "$2"; up "$2" ;;
  "pause kafka-"?) is "$2" running; signal STOP "$2" ;;
  "unpause kafka-"?) is "$2" paused; signal CONT "$2" ;;
  "inspect -f {{.State.Status}} kafka-"?) known "$4"; state "$4" ;;
  "inspect -f {{.NetworkSettings.Networks}} kafka-"?)
    known "$4"; [ -e "$4.cut" ] && echo 'map[]' || echo 'map[kafka_default:0xc0003e2000]' ;;
  "network disconnect kafka_default kafka-"?) known "$4"; touch "$4.cut" ;;
  "network connect kafka_default kafka-"?) known "$4"; rm "$4.cut" ;;
  "compose restart") for n in kafka-0 kafka-1 kafka-2; do signal KILL $n; up $n; done ;;
  "compose ps --status exited -q") for n in kafka-0 kafka-1 kafka-2; do [ "$(state $n)" != exited ] || echo $n; done ;;
  *) echo "unknown command: docker $*" >&2; exit 125 ;;
esac
"""
#: The StatefulSet makes a deleted pod again by the second look at it.
KUBECTL = """
[ ! -e daemon-is-away ] || { echo "The connection to the server was refused" >&2; exit 1; }
case "$*" in
  "delete pod kafka-"?" --grace-period=0 --force") known "$3"; signal KILL "$3"; touch "$3.gone" ;;
  "get pod kafka-"?" --ignore-not-found -o jsonpath={.status.containerStatuses[0].ready}")
    [ "$(state "$3")" = running ] && printf true || printf false
    if [ -e "$3.gone" ]; then rm "$3.gone"; elif [ "$(state "$3")" = exited ]; then up "$3"; fi ;;
  "get networkpolicy ackproof-kafka-"?" --ignore-not-found -o name")
    name=${3#ackproof-}; [ ! -e "$name.cut" ] || echo "networkpolicy.networking.k8s.io/$3" ;;
  "delete networkpolicy ackproof-kafka-"?" --ignore-not-found") rm -f "${3#ackproof-}.cut" ;;
  "apply -f -")
    policy=$(cat); name=$(echo "$policy" | sed -n 's/^  name: ackproof-//p'); known "$name"
    echo "$policy" | grep -q "pod-name: $name$" || exit 1
    echo "$policy" | grep -q "kind: NetworkPolicy" && touch "$name.cut" ;;
  "rollout restart statefulset/kafka") for n in kafka-0 kafka-1 kafka-2; do signal KILL $n; up $n; done ;;
  "rollout status statefulset/kafka --timeout=50s") ;;
  *) echo "unknown command: kubectl $*" >&2; exit 1 ;;
esac
"""
#: On the machine whose name is in MACHINE.
SYSTEMCTL = """
case "$*" in
  "start kafka") [ "$(state "$MACHINE")" != exited ] || up "$MACHINE" ;;
  "stop kafka") signal TERM "$MACHINE" ;;
  "kill -s "*" kafka") is_up=$(state "$MACHINE"); [ "$is_up" != exited ] && signal "$3" "$MACHINE" ;;
  "is-active kafka") [ "$(state "$MACHINE")" = exited ] && { echo failed; exit 3; }; echo active ;;
  "show -p MainPID --value kafka") [ "$(state "$MACHINE")" = exited ] && echo 0 || pid "$MACHINE" ;;
  *) echo "Unknown command verb: $*" >&2; exit 1 ;;
esac
"""
IPTABLES = """
[ "$2 $3 $5 $6" = "OUTPUT -d -j DROP" ] && [ $# = 6 ] || { echo "iptables: bad argument $*" >&2; exit 2; }
rule="$MACHINE.$4.cut"
[ "$1" = -I ] || [ -e "$rule" ] || { echo "iptables: Bad rule (does a matching rule exist?)." >&2; exit 1; }
case "$1" in
  -I) touch "$rule" ;;
  -D) rm "$rule" ;;
  -C) ;;
  *) exit 2 ;;
esac
"""
SUDO = """
[ "$1" = -n ] || { echo "sudo: a password is required" >&2; exit 1; }
shift; exec "$@"
"""
SSH = shutil.which("ssh")
#: With SHLVL a shell reads no file of its user's.
SSHD_CONFIG = """
ListenAddress 127.0.0.1:{port}
HostKey {home}/host_key
AuthorizedKeysFile {home}/user_key.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
KexAlgorithms curve25519-sha256
SetEnv MACHINE={name} PATH={path} SHLVL=2
"""
SSH_CONFIG = """
Host {name}
  HostName 127.0.0.1
  Port {port}
  IdentityFile {home}/user_key
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
"""


class StandIns:
    """The programs in a directory, and the processes of the nodes with these names."""

    def __init__(self, directory: Path, names: tuple[str, ...]) -> None:
        self.state, self.programs = directory / "state", directory / "programs"
        self.state.mkdir()
        self.programs.mkdir()
        self._servers: list[subprocess.Popen[bytes]] = []
        self._ports: dict[str, int] = {}
        self._ending = ExitStack()
        self._taken = self._ending.enter_context(Ports())
        for name in names:
            child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
            self._servers.append(child)
            (self.state / f"{name}.pid").write_text(str(child.pid))

    def put(self, name: str, text: str) -> None:
        """Put a program there."""
        program = self.programs / name
        program.write_text(_COMMON.format(state=self.state) + text)
        program.chmod(0o755)

    def machine(self, name: str, path: str) -> None:
        """Let ``ssh`` find a machine by its ``name``; its OpenSSH server is not started yet."""
        home = self.programs.parent
        port = self._ports[name] = self._taken.take("127.0.0.1").port
        if not (home / "host_key").exists():
            for key in ("host_key", "user_key"):
                subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / key], check=True)
        config = SSHD_CONFIG.format(port=port, home=home, name=name, path=f"{self.programs}:{path}")
        (home / f"sshd-{name}").write_text(config)
        with (home / "ssh_config").open("a") as file:
            file.write(SSH_CONFIG.format(name=name, port=port, home=home))
        client = self.programs / "ssh"
        client.write_text(f'#!/bin/sh\nexec {SSH} -F {home}/ssh_config "$@"\n')
        client.chmod(0o755)

    def serve(self, name: str, sshd: str) -> None:
        """Start a machine's OpenSSH server."""
        command = [sshd, "-D", "-e", "-f", self.programs.parent / f"sshd-{name}"]
        self._servers.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        until = time.monotonic() + 20
        while time.monotonic() < until:
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", self._ports[name])) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError(f"no OpenSSH server for {name}")

    def node(self, name: str) -> str:
        """The state of a node's process, as docker has it, looked at without any of the programs."""
        try:
            stat = Path(f"/proc/{(self.state / f'{name}.pid').read_text().strip()}/stat").read_text()
        except FileNotFoundError:
            return "exited"
        return {"Z": "exited", "X": "exited", "T": "paused"}.get(stat.rpartition(")")[2].split()[0], "running")

    def close(self) -> None:
        """End the servers, and the processes of nodes."""
        for pid in self.state.glob("*.pid"):
            subprocess.run(["kill", "-KILL", pid.read_text().strip()], check=False, stderr=subprocess.DEVNULL)
        self._ending.close()
        for server in self._servers:
            server.terminate()
            server.wait(20)
