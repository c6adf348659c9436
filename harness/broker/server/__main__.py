"""``python -m harness.broker.server CONFIG.json``: one node, in the foreground, until it is asked to stop.

Exit codes: 0 stopped cleanly, 64 the configuration is wrong, 70 the node failed (its log has the reason), 98 its port
is taken.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import sys
from pathlib import Path
from typing import Final

from harness.broker.server.broker import BrokerServer
from harness.broker.server.config import ConfigError, NodeConfig, read_config
from harness.broker.server.control_socket import ControlSocket
from harness.broker.server.controller import ControllerServer
from harness.broker.server.links import NodeLinks
from harness.broker.server.trace import TraceFile

EXIT_CONFIG: Final = 64
EXIT_FAILED: Final = 70
EXIT_PORT: Final = 98

log = logging.getLogger("harness.broker.server")


async def run(config: NodeConfig) -> int:
    """Run one node to its end; the answer is the exit code."""
    Path(config.directory).mkdir(parents=True, exist_ok=True)
    stopping = asyncio.Event()
    failures: list[str] = []
    loop = asyncio.get_running_loop()

    def failed(_: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        failures.append(str(context.get("message")))
        log.critical("the node stops: %s", context.get("message"), exc_info=_exception(context))
        stopping.set()

    loop.set_exception_handler(failed)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    loop.call_later(config.max_lifetime_s, stopping.set)

    trace = TraceFile(Path(config.trace), config.node, config.trace_high_watermark_ms)
    links = NodeLinks(config.node)
    links.cut(config.cuts)
    node: BrokerServer | ControllerServer
    node = (BrokerServer if config.role == "broker" else ControllerServer)(config, trace, links)
    control = ControlSocket(Path(config.control_socket), config.node, links, node, stopping.set)
    try:
        listener = await loop.create_server(node.protocol, config.host, config.port, backlog=128)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        sys.stderr.write(f"port {config.port} of {config.host} is in use; stop its owner or choose another port\n")
        return EXIT_PORT
    await control.open()
    node.start()
    log.info("%s %d serves %s:%d", config.role, config.node, config.host, config.port)
    await stopping.wait()
    if not failures:
        await node.stop()
    listener.close()
    links.close()
    control.close()
    trace.close()
    log.info("%s %d stopped", config.role, config.node)
    return EXIT_FAILED if failures else 0


def _exception(context: dict[str, object]) -> BaseException | None:
    exception = context.get("exception")
    return exception if isinstance(exception, BaseException) else None


def main(arguments: list[str]) -> int:
    """Read the configuration, run the node, print in one line why it did not work."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m harness.broker.server CONFIG.json\n")
        return EXIT_CONFIG
    try:
        config = read_config(Path(arguments[0]))
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_CONFIG
    logging.basicConfig(
        level=config.log_level, stream=sys.stderr, format=f"%(asctime)s %(levelname)s node {config.node}: %(message)s"
    )
    try:
        return asyncio.run(run(config))
    except OSError as error:
        sys.stderr.write(f"node {config.node} failed: {error}\n")
        return EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
