"""What is documented exists, what exists is documented, and the README runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from discretion import errors
from discretion.cli import app
from discretion.mechanisms import MECHANISMS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)


def test_the_first_example_has_at_most_eight_lines():
    assert len([line for line in blocks("python")[0].splitlines() if line.strip()]) <= 8


def test_the_readme_runs(tmp_path):
    """All Python blocks, then all `$` commands, in one empty folder as a new user would."""
    environment = dict(os.environ, COLUMNS="100", PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for block in blocks("python"):
        run = subprocess.run(
            [sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, env=environment
        )
        assert run.returncode == 0, run.stderr
        assert run.stdout.strip()
    commands = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    script = "\n".join(["set -e", *commands])
    run = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stdout + run.stderr
    assert len(commands) >= 5


def test_every_command_is_documented():
    documented = (DOCS / "cli.md").read_text()
    groups = [group.name for group in app.registered_groups]
    commands = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert commands
    for name in filter(None, [*commands, *groups]):
        assert f"discretion {name}" in documented, name


def test_every_error_is_documented_with_who_can_mend_it():
    documented = (DOCS / "errors.md").read_text()
    kinds = [name for name, kind in vars(errors).items() if isinstance(kind, type)]
    assert len(kinds) > 5
    for name in kinds:
        assert f"`{name}`" in documented, name


def test_every_mechanism_is_documented_and_states_its_theorem():
    documented = (DOCS / "mechanisms.md").read_text()
    for name in MECHANISMS:
        assert f"`{name}`" in documented, name


@pytest.mark.parametrize("path", [*sorted(p.name for p in DOCS.glob("*.md")), "README.md"])
def test_links_between_documents_lead_somewhere(path):
    page = ROOT / path if path == "README.md" else DOCS / path
    for target in re.findall(r"\]\(([^)#]+\.(?:md|py|png|svg))\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{path} -> {target}"


def test_nothing_names_a_place_that_only_its_authors_have():
    private = re.compile(r"/work/|pythonhosted|pypi\.org|/root/")
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    texts = [p for p in tracked if p.endswith((".py", ".md", ".toml", ".lock", ".sql", "Makefile", "run"))]
    assert len(texts) > 30
    for name in texts:
        found = private.findall((ROOT / name).read_text())
        assert name == "tests/test_docs.py" or not found, f"{name}: {found}"
