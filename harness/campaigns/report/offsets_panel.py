"""A panel of one log partition's offsets over time: faults as bands, and the marks that an account is about.

What the charts of groups and of transactions have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from harness.campaigns.report.loss_chart import FAULT
from harness.campaigns.report.names import fault_name
from harness.campaigns.report.svg import Linear, drawing, element, group, path, point, text, title, x_axis, y_axis
from harness.campaigns.report.timeline import end_of
from nemesis.receipts import Receipt

WIDTH_PX: Final = 1000
HEIGHT_PX: Final = 220
_LEFT_PX: Final = 90
_TOP_PX: Final = 24
_FOOT_PX: Final = 44
_MARGIN_MIN_US: Final = 10
_MARGIN_MAX_US: Final = 200_000


class OffsetMark(NamedTuple):
    """A moment of the run's clock at which something named an offset, and the words beside the pointer."""

    time_us: int
    offset: int
    tip: str


def offset_scale(low: int, high: int, begin_px: float, end_px: float, ticks_about: int) -> Linear:
    """A scale of offsets, which are whole numbers."""
    return Linear(low, high, begin_px, end_px, max(1, min(ticks_about, high - low)))


class OffsetsPanel:
    """The two axes, and what is drawn between them."""

    def __init__(self, times_us: Iterable[int], offsets: Sequence[int]) -> None:
        """An offset below 0, that of a group without a commit, is drawn as 0."""
        times = sorted(times_us)
        margin_us = min(max((times[-1] - times[0]) // 10, _MARGIN_MIN_US), _MARGIN_MAX_US)
        begin_us, self._end_us = max(0, times[0] - margin_us), times[-1] + margin_us
        self.time = Linear(begin_us / 1e6, self._end_us / 1e6, 0, WIDTH_PX, 12)
        low, high = max(0, min(offsets)), max(0, *offsets)
        alone = low == high
        self.scale = offset_scale(low - alone, high + alone, HEIGHT_PX - 14, 14, 5)

    def pixels(self, mark: OffsetMark) -> tuple[float, float]:
        """The pixels of a mark."""
        return self.x_px(mark.time_us), self.scale.px(max(mark.offset, 0))

    def x_px(self, time_us: int) -> float:
        """The pixel of a moment."""
        return self.time.px(time_us / 1e6)

    def diamond(self, mark: OffsetMark, word: str) -> Markup:
        """A mark that counts, its word above it."""
        x_px, y_px = self.pixels(mark)
        shape = element("path", d=f"M{point(x_px, y_px)}m0-7l7 7l-7 7l-7-7z", class_="ink", fill="none")
        return group(title(mark.tip), shape, self.word(word, x_px, y_px - 10))

    def cross(self, mark: OffsetMark, word: str) -> Markup:
        """A mark that contradicts another one, its word below it."""
        x_px, y_px = self.pixels(mark)
        shape = path([("M", f"{point(x_px, y_px)}m-5-5l10 10m-10 0l10-10")], class_="ink", stroke_width=2.5)
        return group(title(mark.tip), shape, self.word(word, x_px, y_px + 16))

    def word(self, words: str, x_px: float, y_px: float) -> Markup:
        """A word on that side of a mark where there is room."""
        right = x_px < WIDTH_PX / 2
        return text(words, x_px + (9 if right else -9), y_px, class_="word", text_anchor="start" if right else "end")

    def drawn(self, label: str, receipts: Iterable[Receipt], *content: Markup) -> Markup:
        """The drawing: bands of ``receipts`` of faults that took effect, axes, and above them ``content``."""
        inside = group(
            *(self._band(receipt) for receipt in receipts if receipt.begun_us <= self._end_us),
            x_axis(self.time, HEIGHT_PX, 0, "seconds since the run began"),
            y_axis(self.scale, 0, WIDTH_PX, "offset"),
            *content,
            x_px=_LEFT_PX,
            y_px=_TOP_PX,
        )
        return drawing(_LEFT_PX + WIDTH_PX + 20, _TOP_PX + HEIGHT_PX + _FOOT_PX, label, inside)

    def _band(self, receipt: Receipt) -> Markup:
        ended_us = min(end_of(receipt, self._end_us), self._end_us)
        first_px, last_px = max(0.0, self.x_px(receipt.begun_us)), self.x_px(ended_us)
        width_px = max(last_px - first_px, 0)
        words = title(fault_name(receipt))
        return element("rect", words, x=first_px, y=0, width=width_px, height=HEIGHT_PX, fill=FAULT, opacity=0.2)
