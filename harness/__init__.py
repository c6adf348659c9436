"""Everything that runs: plans, worlds, campaigns, the report and the command line.

Rooms know those below them and none above (pyproject.toml, import-linter): cli, bench; campaign; report; run; worlds;
clients, hosts, reference; records; plan. Modules that stand alone here are leaves that any room may use (errors,
choices, observations, segments, durable, progress, java, machine), but for ``doctor``: it must start where nothing that
runs need is installed, so it stands behind no door that leads to them.
"""
