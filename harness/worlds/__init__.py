"""The worlds in which a run can happen: in virtual time, with real processes, or on an existing cluster."""
