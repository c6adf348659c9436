"""The host "ssh": nodes on machines of an inventory, reached with paramiko."""
