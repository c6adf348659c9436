"""The log of a replica on a disk: segments of record batches, their indexes, and the small files beside them."""
