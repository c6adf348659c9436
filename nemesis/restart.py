"""Restarts: brokers that die and come back at once. The fault is Kill; only the stories differ."""

from __future__ import annotations

from typing import Final

from nemesis.kill import Kill, bounce_in_turn
from nemesis.roles import RoleKind
from nemesis.story import Part, Scene, Story


def _bounce(name: str, kind: RoleKind) -> Story:
    def parts(scene: Scene) -> list[Part]:
        role = scene.role(kind, scene.partition())
        return [Part(0, scene.between_ms(100, 300), Kill(role))]

    return Story(name, parts)


STORIES: Final = (
    Story("bounce-in-turn", bounce_in_turn, number="S31"),
    _bounce("bounce-leader", RoleKind.LEADER),
    _bounce("bounce-isr-member", RoleKind.ISR_MEMBER),
)
