"""Words that sentences of verdicts and of the harness share."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: ``1 run``, ``2,000 runs``; ``plural`` is needed where it is not ``noun`` with an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
