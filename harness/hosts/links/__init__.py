"""The ways in which links between nodes are cut or slowed down.

held      the nodes themselves hold back what they would send or take; needs no rights
dropped   the kernel drops packets (nftables), where nodes have addresses of their own
slow      the kernel lets little through, and late (tc), where nodes have interfaces of their own
"""

from harness.hosts.links.dropped import DroppedLinks, dropped_packets, ruleset
from harness.hosts.links.held import HeldLinks
from harness.hosts.links.slow import Interface, Shaper

__all__ = ["DroppedLinks", "HeldLinks", "Interface", "Shaper", "dropped_packets", "ruleset"]
