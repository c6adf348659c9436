"""`ackproof cluster up`, and what is done to a cluster that is up."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from harness.cli.numbers import BoundedNumber
from harness.cli.terminal import RESULTS, Terminal, WordType, assigned, path_type, takes_json
from harness.ground.errors import EXIT_HELD
from harness.records.files import exact_campaign, new_campaign
from harness.runs.cluster import (
    BREAKS,
    NODES,
    VERBS,
    ClusterByHand,
    ClusterRequest,
    Doors,
    ask,
    planned,
    running_cluster,
)
from harness.worlds.contract import NodeCrash
from nemesis.cluster import ClusterView, node_name
from nemesis.receipts import Receipt
from nemesis.topology import Shape
from workloads import InstanceExit


@click.group()
def cluster() -> None:
    """Start a cluster to play with, break it by hand, heal it.

    It is broken and healed from another terminal.
    """


@cluster.command("up")
@click.option("--world", type=WordType("world", ["processes", "kafka"]), default="processes", show_default=True)
@click.option("--version", default="", help="The release of Apache Kafka; see `ackproof kafka list`.")
@click.option("--host", type=WordType("host", ["loopback", "namespaces"]), default="loopback", show_default=True)
@click.option("--settings", multiple=True, metavar="NAME=VALUE", help="Fix a setting; may be repeated.")
@click.option("--brokers", type=BoundedNumber("brokers"), default=3, show_default=True)
@click.option("--topic", default="playground", show_default=True)
@click.option("--partitions", type=BoundedNumber("partitions"), default=1, show_default=True)
@click.option(
    "--family", "families", multiple=True, metavar="power", help="Prepare its faults too (as root); repeatable."
)
@click.option("--application", default="", metavar="COMMAND", help="A program of yours that reads the topic.")
@click.option("--instances", type=BoundedNumber("instances"), default=2, show_default=True, help="Its instances.")
@click.option("--tls", is_flag=True, help="Kafka: clients need TLS.")
@click.option("--sasl", is_flag=True, help="Kafka: clients need a user and a password (PLAIN).")
@click.option("--out", type=path_type, help="The cluster's directory, instead of results/cluster.")
@takes_json
def up(
    terminal: Terminal,
    *,
    world: str,
    version: str,
    host: str,
    settings: Sequence[str],
    brokers: int,
    topic: str,
    partitions: int,
    families: Sequence[str],
    application: str,
    instances: int,
    tls: bool,
    sasl: bool,
    out: Path | None,
) -> int:
    """Start a cluster with one topic.

    The last line has its bootstrap servers. It ends with Ctrl-C, and leaves nothing running.

    Its directory keeps logs, data and receipts. Should this process be killed, `ackproof heal DIRECTORY` ends the rest.
    """
    spec = planned(
        world,
        settings=assigned(settings),
        brokers=brokers,
        topic=topic,
        partitions=partitions,
        families=("kill", *families),
        guarded=tls or sasl,
        application=application,
        instances=instances,
        host=host,
        version=version,
    )
    directory = exact_campaign(out) if out else new_campaign(RESULTS, "cluster")
    cluster = ClusterByHand(spec, directory, tls=tls, sasl=sasl)
    try:
        doors = cluster.open()
        terminal.answer(_facts(directory, topic, doors), _up_lines(directory, topic, doors))
        sys.stdout.flush()
        cluster.serve(
            lambda crash: terminal.complain(_crashed(crash)), lambda end: terminal.complain(_instance_ended(end))
        )
    except KeyboardInterrupt:
        terminal.note("ended")
    finally:
        cluster.close()
    return EXIT_HELD


def _facts(directory: Path, topic: str, doors: Doors) -> dict[str, object]:
    files = {"properties": doors.properties, "plan": doors.plan}
    named = {name: str(file) for name, file in files.items() if file is not None}
    return {"directory": str(directory), "topic": topic, "bootstrap": list(doors.servers), **named}


def _up_lines(directory: Path, topic: str, doors: Doors) -> Iterator[str]:
    yield f"The cluster is in {directory} and has the topic {topic}. Ctrl-C ends it."
    if doors.properties is not None:
        yield f"for Kafka's tools: --command-config {doors.properties}"
        yield f"for ackproof: assess --access {doors.plan}, campaign {doors.plan}"
    yield ",".join(doors.servers)


def _crashed(crash: NodeCrash) -> str:
    return f"node {crash.node} ended by itself with {crash.exit}: {crash.words}"


def _instance_ended(end: InstanceExit) -> str:
    return f"instance {end.instance} ended by itself with {end.exit}: {end.words}"


def _of_cluster(function: Callable[..., Any]) -> Callable[..., Any]:
    """A command about a cluster that is up."""
    help_ = "The cluster's directory; by default the one cluster that is up below results."
    return takes_json(click.option("--in", "directory", type=path_type, help=help_)(function))


@cluster.command("break", epilog=f"FAULT is one of {', '.join(VERBS)}.\n\nSee docs/guides/cluster-by-hand.md.")
@click.argument("fault", type=WordType("fault", BREAKS), metavar="FAULT")
@click.option(
    "--node", default="leader", show_default=True, help=f"The number of a broker or an instance, or {', '.join(NODES)}."
)
@click.option(
    "--partition", type=BoundedNumber("partition"), default=0, help="The log partition of that leader or follower."
)
@click.option(
    "--shape",
    type=WordType("shape", Shape),
    metavar="SHAPE",
    default=Shape.ISOLATE,
    help=f"The links that are cut, slowed or held: {', '.join(Shape)}.",
)
@_of_cluster
def break_command(
    terminal: Terminal, *, fault: str, node: str, partition: int, shape: str, directory: Path | None
) -> int:
    """Do something to a cluster that is up, until it is healed.

    It prints what was observed. With `move`, --node is the broker that shall lead.
    """
    request = ClusterRequest(op="break", fault=fault, node=node, partition=partition, shape=Shape(shape))
    return _asked(terminal, directory, request)


@cluster.command("heal")
@_of_cluster
def heal_command(terminal: Terminal, *, directory: Path | None) -> int:
    """Undo what was done by hand, and start dead nodes."""
    return _asked(terminal, directory, ClusterRequest(op="heal"))


@cluster.command("show")
@_of_cluster
def show_command(terminal: Terminal, *, directory: Path | None) -> int:
    """Say who leads, who is in sync and who runs."""
    return _asked(terminal, directory, ClusterRequest(op="show"))


def _asked(terminal: Terminal, directory: Path | None, request: ClusterRequest) -> int:
    answer = ask(directory or running_cluster(RESULTS), request)
    if terminal.as_json:
        terminal.json(answer)
        return EXIT_HELD
    for receipt in answer.receipts:
        terminal.say(_shown(receipt))
    if request.op == "show" and answer.view is not None:
        for line in _view_lines(answer.view):
            terminal.say(line)
    return EXIT_HELD


def _shown(receipt: Receipt) -> str:
    """One receipt in a line: when, what, whom, and what was observed."""
    ended = receipt.mark == "end"
    links = [f"{node_name(link.source)} > {node_name(link.target)}" for link in receipt.links]
    where = ", ".join([*map(node_name, receipt.targets), *links])
    time_us = receipt.ended_us if ended and receipt.ended_us is not None else receipt.begun_us
    evidence = receipt.end_evidence if ended else receipt.begin_evidence
    if ended:
        happened = "undone" if evidence else "over"
    else:
        happened = "done" if receipt.took_effect else f"not done ({receipt.reason})"
    observed = msgspec.json.encode(evidence, enc_hook=str).decode()
    return f"{time_us / 1e6:.3f} s  {receipt.fault} of {where}: {happened}  {observed}"


def _view_lines(view: ClusterView) -> Iterator[str]:
    for name, state in sorted(view.partitions.items()):
        leader = "nobody leads" if state.leader is None else f"{node_name(state.leader)} leads"
        isr = " ".join(map(str, state.isr))
        yield f"{name}: {leader}, leader epoch {state.leader_epoch}, in sync {isr} of {len(state.replicas)}"
    yield f"running: {', '.join(map(node_name, (*view.running, *view.running_controllers)))}"
