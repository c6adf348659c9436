"""Draws SVG as text: elements, scales and axes. The page's style has the colours, so paper and night need no script.

The meaning of a mark is in its ``<title>``, which browsers show beside the pointer and read aloud.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from markupsafe import Markup, escape

#: Okabe and Ito's palette, distinct with any colour vision; brokers take its colours in turn.
PALETTE: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
#: Pixels of a letter of a label.
LETTER_PX: Final = 6.2
#: A label shorter than this says nothing.
_LETTERS_MIN: Final = 6
_TICK_PX: Final = 5
_STEPS: Final = (1, 2, 5, 10)

Attribute = str | float | None


def element(name: str, *content: Markup | str, **attributes: Attribute) -> Markup:
    """One element: ``class_`` is its class, ``_`` in a name a dash, numbers have a digit after the point."""
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_written(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(map(escape, content))
    return Markup(f"<{name}{words}>{inner}</{name}>" if inner else f"<{name}{words}/>")  # noqa: S704 - all is escaped


def title(words: str) -> Markup:
    """The words beside the pointer; the first child of the mark that they explain."""
    return element("title", words)


def drawing(width_px: float, height_px: float, label: str, *content: Markup) -> Markup:
    """A whole drawing with its name for readers who cannot see it."""
    box = f"0 0 {_written(width_px)} {_written(height_px)}"
    return element("svg", *content, viewBox=box, width=width_px, height=height_px, role="img", aria_label=label)


def group(*content: Markup, x_px: float = 0, y_px: float = 0, **attributes: Attribute) -> Markup:
    """Marks that share attributes, moved by ``x_px`` and ``y_px``."""
    move = f"translate({_written(x_px)} {_written(y_px)})" if x_px or y_px else None
    return element("g", *content, transform=move, **attributes)


def text(words: str, x_px: float, y_px: float, **attributes: Attribute) -> Markup:
    """A line of text that begins at ``x_px``, its base at ``y_px``."""
    return element("text", words, x=x_px, y=y_px, **attributes)


def path(steps: Iterable[tuple[str, float | str]], **attributes: Attribute) -> Markup:
    """A path of SVG commands (``("M", "0 1"), ("H", 7.25)``)."""
    return element("path", d="".join(f"{command}{_written(to)}" for command, to in steps), **attributes)


def point(x_px: float, y_px: float) -> str:
    """A point as commands of a path want it."""
    return f"{_written(x_px)} {_written(y_px)}"


def cut(label: str, room_px: float) -> str:
    """The label, shortened to ``room_px``; empty where there is room for a few letters only."""
    letters = int(room_px / LETTER_PX)
    if len(label) <= letters:
        return label
    return "" if letters < _LETTERS_MIN else label[: letters - 1] + "…"


def _written(value: str | float) -> str:
    if isinstance(value, str):
        return value
    digits = f"{value:.1f}".rstrip("0").rstrip(".")
    return "0" if digits == "-0" else digits


class Scale(Protocol):
    """Maps values to pixels, and knows the values worth naming."""

    def px(self, value: float) -> float:
        """The pixel of ``value``."""

    def ticks(self) -> Mapping[float, str]:
        """Values on the axis, each with its words."""


class Linear(NamedTuple):
    """Values from ``low`` to ``high``, evenly from ``begin_px`` to ``end_px``; ``unit`` is how they are written."""

    low: float
    high: float
    begin_px: float
    end_px: float
    ticks_about: int = 6
    unit: str = "{:,g}"

    def px(self, value: float) -> float:
        """The pixel of ``value``."""
        return self.begin_px + (value - self.low) / (self.high - self.low or 1) * (self.end_px - self.begin_px)

    def ticks(self) -> Mapping[float, str]:
        """Round values, about ``ticks_about`` of them."""
        rough = (self.high - self.low or 1) / self.ticks_about
        decade = 10.0 ** math.floor(math.log10(rough))
        step = next(decade * factor for factor in _STEPS if decade * factor >= rough * 0.999)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return {number * step: self.unit.format(round(number * step, 9)) for number in range(first, last + 1)}


class Milliseconds(NamedTuple):
    """Times (ms) on a logarithmic axis, each power of ten named in its own unit."""

    low: float
    high: float
    begin_px: float
    end_px: float

    def px(self, value: float) -> float:
        """The pixel of ``value``, which is above 0."""
        low, high = math.log10(self.low), math.log10(self.high)
        return self.begin_px + (math.log10(value) - low) / (high - low or 1) * (self.end_px - self.begin_px)

    def ticks(self) -> Mapping[float, str]:
        """Powers of ten between the ends."""
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        return {10.0**power: milliseconds(10.0**power) for power in range(first, last + 1)}


def milliseconds(time_ms: float) -> str:
    """A time with three digits, in the unit that suits it."""
    if time_ms >= 1000:
        return f"{time_ms / 1000:.3g} s"
    return f"{time_ms:.3g} ms" if time_ms >= 1 else f"{time_ms * 1000:.3g} µs"


def x_axis(scale: Scale, y_px: float, grid_to_px: float, name: str = "", *, names: bool = True) -> Markup:
    """An axis along ``y_px``: lines of the grid to ``grid_to_px``, words beyond the axis, away from the grid."""
    away = 1 if y_px >= grid_to_px else -1
    base_px = y_px + away * (_TICK_PX + (10 if away > 0 else 3))
    ticks = scale.ticks()
    grid = path(
        (step for value in ticks for step in (("M", point(scale.px(value), y_px)), ("V", grid_to_px))), class_="grid"
    )
    words = [text(word, scale.px(value), base_px, text_anchor="middle") for value, word in ticks.items() if names]
    below_px = base_px + away * 15
    middle_px = (scale.px(min(ticks)) + scale.px(max(ticks))) / 2 if ticks else 0
    named = [text(name, middle_px, below_px, text_anchor="middle")] if name else []
    return group(grid, *words, *named, class_="axis")


def y_axis(scale: Scale, x_px: float, grid_to_px: float, name: str = "") -> Markup:
    """An axis along ``x_px``, the left one: words on its left, lines of the grid to ``grid_to_px``."""
    ticks = scale.ticks()
    grid = path(
        (step for value in ticks for step in (("M", point(x_px, scale.px(value))), ("H", grid_to_px))), class_="grid"
    )
    words = [text(word, x_px - 6, scale.px(value) + 4, text_anchor="end") for value, word in ticks.items()]
    highest_px = min((scale.px(value) for value in ticks), default=0)
    named = [text(name, x_px - 6, highest_px - 12, text_anchor="end")] if name else []
    return group(grid, *words, *named, class_="axis")


def legend(name: str, colours: Mapping[str, str], x_px: float, y_px: float) -> Markup:
    """Colours in a row, each with its meaning, after the name of them all."""
    parts = [text(name, x_px, y_px + 9)] if name else []
    x_px += len(name) * LETTER_PX + 12 if name else 0
    for word, colour in colours.items():
        parts += [element("rect", x=x_px, y=y_px, width=10, height=10, fill=colour), text(word, x_px + 14, y_px + 9)]
        x_px += len(word) * LETTER_PX + 32
    return group(*parts, class_="axis")


def ink_on(colour: str) -> str:
    """Black or white, whichever is read better on ``colour``, six hexadecimal digits."""
    parts = [int(colour[first : first + 2], 16) / 255 for first in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    # At this luminance both have the same contrast, by WCAG 2.
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "#ffffff"


def coloured(names: Sequence[str], colours: Sequence[str]) -> dict[str, str]:
    """A colour for each name; the last colour serves all that are left."""
    return {name: colours[min(number, len(colours) - 1)] for number, name in enumerate(dict.fromkeys(names))}
