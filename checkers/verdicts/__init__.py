"""From findings to verdicts: promises, judgements, cells, the matrix."""
