"""A log partition as arrays: loading, ids, steps, version order, and the phases of a run."""
