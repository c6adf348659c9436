"""The expected outcome of a plan, as data: each cell is held against the first entry of ``[[expected]]`` that fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

import msgspec

from checkers import ANOMALIES, FIGURES
from harness.ground.known_defects import product_findings
from harness.plan.values import PlanKey, ReadBy, Table, flattened, of_kind, record_of, table_of
from workloads import ImpossibleValueError, Settings, SettingsError, SettingValue, shown, spelled, unknown_name

Word = Literal["broken promise", "stalled", "unknown", "permitted loss", "not exercised", "held"]


def _settings(value: object, plan_key: PlanKey) -> Table:
    settings, possible = flattened(table_of(value, plan_key)), Settings().to_mapping()
    if strange := settings.keys() - possible.keys():
        raise plan_key.wrong(unknown_name("setting", min(strange), possible))
    for name, values in settings.items():
        for choice in values if isinstance(values, list) else [values]:
            if not isinstance(choice, bool | int | float | str):
                raise (plan_key / name).wrong(f"takes a value or a list of values, not {shown(values)}")
            _refuse_impossible(name, choice, plan_key)
    return settings


def _anomalies(value: object, plan_key: PlanKey) -> tuple[str, ...]:
    anomalies: tuple[str, ...] = of_kind(value, tuple[str, ...], plan_key)
    for anomaly in anomalies:
        if anomaly not in ANOMALIES:
            raise plan_key.wrong(unknown_name("anomaly", anomaly, ANOMALIES))
    return anomalies


def _figures(value: object, plan_key: PlanKey) -> dict[str, tuple[float, float]]:
    """The bounds of figures, which a plan may name without quotes."""
    figures = {}
    for name, bounds in flattened(table_of(value, plan_key)).items():
        if name not in FIGURES:
            raise plan_key.wrong(unknown_name("figure", name, FIGURES))
        match bounds:
            case [int() | float() as least, int() | float() as most] if least <= most:
                figures[name] = (float(least), float(most))
            case _:
                raise (plan_key / name).wrong(f"takes the least and the most, such as [0, 50], not {shown(bounds)}")
    return figures


def _refuse_impossible(name: str, value: object, plan_key: PlanKey) -> None:
    """Refuse a value that no cell can have. One that is possible with others only is not judged here."""
    try:
        Settings.from_mapping({name: value})
    except ImpossibleValueError as error:
        raise plan_key.wrong(error) from error
    except SettingsError:
        return


class ExpectedOutcomes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry: the cells that it fits, and the outcomes that they may have.

    Without a ``world``, a ``family`` or ``settings`` it fits any. ``some`` is an outcome that one of its cells has at
    least. ``anomalies`` are all that a broken promise may be of; none: any; ``finding`` is the number of the project's
    account of it, and those that it marks must bear its marks. ``figures`` are bounds of numbers of a cell
    (:data:`checkers.FIGURES`): least and most.
    """

    outcomes: tuple[Word, ...]
    some: Word | Literal[""] = ""
    world: str = ""
    family: str = ""
    settings: Annotated[dict[str, SettingValue | list[SettingValue]], ReadBy(_settings)] = {}
    anomalies: Annotated[tuple[str, ...], ReadBy(_anomalies)] = ()
    finding: str = ""
    figures: Annotated[dict[str, tuple[float, float]], ReadBy(_figures)] = {}

    def fits(self, world: str, family: str, settings: Mapping[str, SettingValue]) -> bool:
        """True of a cell of this world, family and these complete settings."""
        return (
            self.world in {"", world}
            and self.family in {"", family}
            and all(_is_one_of(settings.get(name), value) for name, value in self.settings.items())
        )


def _is_one_of(value: object, wanted: object) -> bool:
    choices = wanted if isinstance(wanted, list) else [wanted]
    return spelled(value) in map(spelled, choices)


def expected_in(
    listed: Iterable[Table], families: Iterable[str], worlds: Iterable[str], plan_key: PlanKey
) -> tuple[ExpectedOutcomes, ...]:
    """The ``listed`` entries of a plan that has these ``families`` and ``worlds``."""
    entries = [(plan_key[n], record_of(ExpectedOutcomes, entry, plan_key[n])) for n, entry in enumerate(listed)]
    for here, expected in entries:
        if not expected.outcomes:
            raise (here / "outcomes").wrong("no outcome is expected; name those that these cells may have")
        if expected.some and expected.some not in expected.outcomes:
            raise (here / "some").wrong(f'"{expected.some}" is not among the outcomes; add it there')
        if expected.finding and expected.finding not in product_findings():
            raise (here / "finding").wrong(unknown_name("finding", expected.finding, product_findings()))
        _refuse_absent("family", expected.family, families, here)
        _refuse_absent("world", expected.world, worlds, here)
    return tuple(expected for _, expected in entries)


def _refuse_absent(key: str, name: str, offered: Iterable[str], plan_key: PlanKey) -> None:
    """Refuse the name of a family or a world that no cell of the plan has: the entry would fit none."""
    if name and name not in (names := dict.fromkeys(offered)):
        raise (plan_key / key).wrong(
            f"the plan has no {key} {shown(name)}; it has {' and '.join(map(shown, names))}: write one of them, or "
            "leave the entry out"
        )
