"""The choices of settings that a plan asks for: ``[settings]``, ``[matrix]`` and ``[[matrix.exclude]]``.

Every combination of the matrix is a choice but those that an exclusion takes out, so that settings which cannot go
together do not cost a matrix its other cells. Exclusions are looked at before settings are put together.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Final

from harness.plan.counting import refuse_too_many_combinations
from harness.plan.file_form import PlanFile, refuse_misplaced
from harness.plan.model import Choice, settings_label, unknown_setting
from harness.plan.values import PlanKey, Table, choices_of, flattened, tables_at
from workloads import IDEMPOTENCE, NO_ERA, PRESETS, Settings, SettingsError, SettingValue, shown

#: Settings whose default is the client library's own.
CLIENT_DEFAULTS: Final = (IDEMPOTENCE,)
#: Rules that follow from the release of the brokers, where the plan names no era.
RELEASE_RULES: Final = ("unclean.elections",)


def choices_in(plan: PlanFile, overrides: Mapping[str, object], plan_key: PlanKey) -> Iterator[Choice]:
    """The choices of settings of a plan; ``overrides`` fix those that it leaves open or says otherwise."""
    matrix = plan_key / "matrix"
    axes = {**plan.matrix}
    exclusions = _exclusions(axes, matrix)
    axes.pop("exclude", None)
    axes, fixed = flattened(axes), flattened(plan.settings)
    for key, given in (("settings", fixed), ("matrix", axes)):
        refuse_misplaced(given, Settings().to_mapping(), plan_key / key)
    _refuse_unknown(fixed, plan_key / "settings")
    _refuse_unknown(axes, matrix, lists=True)
    _refuse_unknown(overrides, PlanKey("--settings"))
    for name in axes:
        if name in fixed:
            raise (matrix / name).wrong("this setting is under [settings] too; leave one of them out")
    refuse_too_many_combinations(axes, exclusions, matrix)
    compared = {name for exclusion in exclusions for name in exclusion.values}
    lists = {
        name: [_meant(name, value) if name in compared else value for value in choices_of(values, matrix / name)]
        for name, values in axes.items()
    }
    fixed, overrides = (
        {name: _meant(name, value) if name in compared else value for name, value in given.items()}
        for given in (fixed, overrides)
    )
    _refuse_idle(exclusions, [fixed | varied for varied in _combinations(lists)])
    seen: set[str] = set()
    for varied in _combinations({name: values for name, values in lists.items() if name not in overrides}):
        values = {**fixed, **overrides, **varied}
        if any(exclusion.matches(values) for exclusion in exclusions):
            continue
        settings = _possible(values, varied, plan.brokers, plan_key)
        label = settings_label(settings, varied)
        if label in seen:
            raise matrix.wrong(f"two combinations are the same, {label}; write each value only once")
        seen.add(label)
        left_open = tuple(name for name in CLIENT_DEFAULTS if name not in values)
        rules = tuple(name for name in RELEASE_RULES if name not in values and "era" not in values)
        yield Choice(label=label, settings=settings, client_defaults=left_open, release_rules=rules)
    if not seen:
        raise (matrix / "exclude").wrong("these exclusions leave nothing to run; remove one")


class _Exclusion:
    """One ``[[matrix.exclude]]``: every combination that has all of its ``values`` is left out.

    Both are spelled as settings spell them. A value that a combination does not name is the default; what the client
    decides has none here.
    """

    def __init__(self, plan_key: PlanKey, values: Table) -> None:
        self.plan_key = plan_key
        self.values = {name: _meant(name, value) for name, value in values.items()}
        self._defaults = Settings().to_mapping() | dict.fromkeys(CLIENT_DEFAULTS)

    def matches(self, combination: Table) -> bool:
        """True of a ``combination`` that is to be left out."""
        for name, value in self.values.items():
            given = combination[name] if name in combination else self._default(name, combination)
            if given != value:
                return False
        return True

    def _default(self, name: str, combination: Table) -> object:
        return PRESETS.get(str(combination.get("era", NO_ERA)), {}).get(name, self._defaults[name])


def _combinations(axes: Mapping[str, list[object]]) -> list[dict[str, object]]:
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def _exclusions(axes: Table, plan_key: PlanKey) -> list[_Exclusion]:
    exclusions = [(here, flattened(entry)) for here, entry in tables_at(axes, "exclude", plan_key)]
    for here, exclusion in exclusions:
        _refuse_unknown(exclusion, here, lists=True)
        for name, value in exclusion.items():
            if isinstance(value, list):
                raise (here / name).wrong(f"takes one value; write a [[matrix.exclude]] for each of {shown(value)}")
    return [_Exclusion(here, values) for here, values in exclusions]


def _refuse_idle(exclusions: list[_Exclusion], combinations: list[dict[str, object]]) -> None:
    for exclusion in exclusions:
        if not any(exclusion.matches(values) for values in combinations):
            raise exclusion.plan_key.wrong("no combination of the matrix has these values; correct or remove them")


def _meant(name: str, value: object) -> object:
    """``value`` as settings spell it (``acks`` -1 is "all"), or as it is where it is possible with others only."""
    try:
        return Settings.from_mapping({name: value}).to_mapping()[name]
    except SettingsError:
        return value


def _refuse_unknown(names: Table, plan_key: PlanKey, *, lists: bool = False) -> None:
    settings = Settings().to_mapping()
    for name, value in names.items():
        if name not in settings:
            raise (plan_key / name).wrong(unknown_setting(name))
        if isinstance(value, list) and not lists:
            raise (plan_key / name).wrong("takes one value; write a list of values under [matrix]")


def _possible(values: Table, varied: Table, brokers: int, plan_key: PlanKey) -> dict[str, SettingValue]:
    try:
        settings = Settings.from_mapping(values)
    except SettingsError as error:
        # The sentence of a SettingsError begins with the name of the setting to correct.
        guilty = next((name for name in values if str(error).startswith((f"{name}=", f"{name} "))), "")
        raise (plan_key / ("matrix" if guilty in varied else "settings")).wrong(error) from error
    if settings.replication_factor > brokers:
        raise (plan_key / ("matrix" if "replication.factor" in varied else "settings")).wrong(
            f"replication.factor={settings.replication_factor} needs that many brokers and the plan has {brokers}; "
            "raise brokers or lower replication.factor"
        )
    return settings.to_mapping()
