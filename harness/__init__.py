"""Everything that runs: plans, worlds, campaigns, the report and the command line.

Rooms know those below them and none above: docs/architecture.md has them in order, and pyproject.toml holds it.
Modules that lie here are leaves that any room may use.
"""
