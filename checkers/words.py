"""Words that sentences of verdicts and of the harness share."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: ``1 run``, ``2,000 runs``; ``plural`` is needed where it is not ``noun`` with an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def percent(share: float) -> str:
    """A share with two significant digits, three from ten percent on; never rounded down to nothing."""
    if share in {0.0, 1.0}:
        return f"{share * 100:.0f} %"
    digits = 2 if share < 0.1 else 3
    return f"{float(f'{share * 100:.{digits}g}'):g} %" if share >= 1e-6 else "< 0.0001 %"


def seconds(time_us: int | None) -> str:
    """A time in seconds, or "never"."""
    return "never" if time_us is None else f"{time_us / 1e6:.2f} s"
