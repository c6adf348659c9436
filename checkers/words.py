"""Words that sentences of verdicts and of the harness share."""


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun: ``1 run``, ``2,000 runs``; ``many`` is a plural that is not ``one`` with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
