"""Each replication rule is where its text says, and is held by the tests that it names."""

from __future__ import annotations

import ast
import pkgutil
import re
from pathlib import Path
from typing import Final

import pytest

from scripts.reference.replication_rules import Rule, rules
from workloads import Settings

HERE: Final = Path(__file__).parent
SOURCE: Final = HERE.parents[3]
RULES: Final = {f"rule {rule.number}": rule for rule in rules()}
#: "rule 7", "rules 7, 22", "rules 13 to 15".
CITED: Final = re.compile(r"\brules? (\d+(?:(?:, | and | to )\d+)*)")


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_is_where_its_text_says(rule: Rule) -> None:
    for code in rule.code:
        pkgutil.resolve_name(f"harness.broker.{code if code.startswith('server.') else f'core.{code}'}")


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_is_held_by_tests(rule: Rule) -> None:
    assert rule.tests or "not implemented" in rule.text
    for test in rule.tests:
        module, _, name = test.partition("::")
        directory = {"server": HERE.parent, "stories": HERE.parents[1] / "runs"}.get(module.partition("/")[0], HERE)
        tree = ast.parse((directory / f"{module}.py").read_text(encoding="utf-8"))
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert f"test_{name}" in functions, test


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_switch_is_a_setting(rule: Rule) -> None:
    assert {*rule.switch} <= Settings().to_mapping().keys()


def test_rules_have_numbers_of_their_own() -> None:
    assert len(RULES) == len(rules())


@pytest.mark.parametrize("package", ["harness", "checkers", "nemesis", "workloads"])
def test_code_cites_rules_that_exist(package: str) -> None:
    texts = [file.read_text(encoding="utf-8") for file in sorted((SOURCE / package).rglob("*.py"))]
    cited = {int(number) for text in texts for words in CITED.findall(text) for number in re.findall(r"\d+", words)}
    assert cited
    assert cited <= {rule.number for rule in rules()}
