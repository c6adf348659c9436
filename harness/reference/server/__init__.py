"""The reference broker as a server: the sans-IO core of :mod:`harness.reference.core` with sockets, files, time.

``python -m harness.reference.server CONFIG.json`` runs one node. From the outside in:

    links       connections, frames, who is at the other end, cuts
    codec       Kafka's protocol to plain requests (requests) and back
    sessions    one client: requests in order, answers in order
    *_requests  what a broker does with each kind of request; gateway leads into the core
    groups      consumer groups, sans-IO; offsets: what they committed
    peers       connections to the controller and to leaders
    segments    the log in files
    runtime     does what the core asks for; server and controller_server put everything together
    control     how the harness steers a node
"""
