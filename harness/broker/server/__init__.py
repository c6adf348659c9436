"""The reference broker as a server: the sans-IO core of :mod:`harness.broker.core` with sockets, files, time.

``python -m harness.broker.server CONFIG.json`` runs one node. From the outside in:

    links       connections, frames, who is at the other end, cuts
    codec       the wire protocols: frames to requests, and fields of answers to frames
    sessions    one client: requests in order, answers in order
    handlers    what a broker does with each kind of request; gateway leads into the core, membership is consumer groups
    peers       connections to the controller and to leaders
    storage     the log of a replica in files
    runtime     does what the core asks for; broker and controller put everything together
    control     steers a node from the harness; trace writes what the core observed
"""

from harness.broker.server.config import NodeConfig, spoken
from harness.broker.server.control_socket import describe_image
from harness.broker.server.storage.log import FileLog

__all__ = ["FileLog", "NodeConfig", "describe_image", "spoken"]
