"""A linter has nothing to say of the container file, and `make image-check` knows how to perform each of its steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.image_check import CONTAINERFILE, ImageStep, Tree, lint, steps_of


def test_the_linter_says_nothing_of_the_container_file_and_much_of_a_bad_one(tmp_path: Path) -> None:
    (bad := tmp_path / "Containerfile").write_text(CONTAINERFILE.read_text().replace("WORKDIR /work", "WORKDIR work"))
    assert "DL3000" in lint(bad)
    assert lint(CONTAINERFILE) == ""


def test_each_step_is_performed_in_its_order_with_lines_that_go_on_joined() -> None:
    steps = steps_of(CONTAINERFILE)
    kinds = " ".join(step.instruction for step in steps)
    assert kinds == "FROM RUN ARG ARG ENV COPY WORKDIR RUN ENTRYPOINT CMD"
    packages = " ".join(steps[1].value.split())
    assert packages.startswith("apt-get update -qq && apt-get install")
    assert "default-jre-headless e2fsprogs" in packages
    assert steps[-1] == ImageStep("CMD", '["pull-request"]')


def test_a_step_of_an_unknown_kind_is_not_left_out_in_silence(tmp_path: Path) -> None:
    (file := tmp_path / "Containerfile").write_text("FROM scratch\nUSER nobody\nVOLUME /x\n")
    with pytest.raises(ValueError, match="no way to perform USER, VOLUME"):
        steps_of(file)


def test_arguments_variables_files_and_the_directory_reach_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (context := tmp_path / "context").mkdir()
    (context / "file").write_text("copied")
    tree, root = Tree(tmp_path / "root", context), tmp_path / "root"
    ran: list[str] = []
    monkeypatch.setattr(tree, "run", ran.append)
    for step in (
        ImageStep("ARG", "KAFKA=newest"),
        ImageStep("ENV", "VENV=/opt/ackproof"),
        ImageStep("COPY", ". /work"),
        ImageStep("WORKDIR", "/work"),
        ImageStep("RUN", "ls"),
        ImageStep("ENTRYPOINT", '["run.sh"]'),
        ImageStep("CMD", '["pull request"]'),
    ):
        tree.perform(step)
    assert (root / "work" / "file").read_text() == "copied"
    assert ran == ["ls"]
    assert tree.environment["KAFKA"] == "newest"
    assert tree.environment["VENV"] == "/opt/ackproof"
    assert tree.own_command == "run.sh 'pull request'"
