"""The log of a replica on a disk: a file of record batches, and the small files beside it."""
