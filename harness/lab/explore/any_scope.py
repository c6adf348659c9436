"""The common part of all scopes: a name, constants, settings, and the rules that count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

import msgspec
from msgspec.structs import replace

from harness.ground.errors import PlanError
from harness.plan import PlanKey, of_kind
from workloads import Settings, SettingsError, unknown_name

Times = Annotated[int, msgspec.Meta(ge=0)]
Few = Annotated[int, msgspec.Meta(ge=1, le=4)]


class ScopeConstants(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Bounds of how often something may happen; anything not named here happens as often as it can."""


class AnyScope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A named scope: its constants, and settings under Kafka's names, with acks=all and min.insync.replicas=2.

    ``families`` are those of faults that it is about: its steps are theirs, with fewer records and faults than in runs.
    ``rules`` are those that count; all that its kind of scope has where no rule is named.
    """

    name: str
    title: str
    constants: ScopeConstants = ScopeConstants()
    settings: dict[str, object] = {}
    families: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()

    @property
    def in_effect(self) -> dict[str, object]:
        """All settings under Kafka's names.

        Raises:
            PlanError: see :attr:`chosen`.
        """
        return dict(self.chosen.to_mapping())

    @property
    def chosen(self) -> Settings:
        """The settings as a whole.

        Raises:
            PlanError: they are wrong, or the search cannot follow them.
        """
        try:
            settings = Settings.from_mapping({"min.insync.replicas": 2, **self.settings})
        except SettingsError as error:
            raise PlanError(str(error)) from error
        if settings.leader_election != "isr":
            raise PlanError("explore knows elections of in-sync replicas only; leave out leader.election")
        if settings.expires:
            raise PlanError("explore knows no age of records; leave out retention.ms")
        return settings

    def varied(self, constants: Mapping[str, object], settings: Mapping[str, object]) -> Self:
        """This scope with some constants and settings changed.

        Raises:
            PlanError: an unknown constant (the nearest is named), or a value of the wrong type or beyond its bounds.
        """
        bounds = msgspec.to_builtins(self.constants)
        for name in constants:
            if name not in bounds:
                raise PlanError(unknown_name("constant", name, bounds))
        kinds = {field.encode_name: field.type for field in msgspec.structs.fields(self.constants)}
        given = {name: of_kind(value, kinds[name], PlanKey(f"--constant {name}")) for name, value in constants.items()}
        changed = msgspec.convert({**bounds, **given}, type(self.constants))
        return replace(self, constants=changed, settings={**self.settings, **settings})

    def leaves_out(self) -> list[str]:
        """Sentences about what no state of this search has."""
        raise NotImplementedError
