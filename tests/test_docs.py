"""What is documented exists, what exists is documented, and the README runs."""

import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from math import exp
from pathlib import Path

import pytest
from typer.testing import CliRunner

import discretion
from discretion import arrays, errors
from discretion.cli import app
from discretion.connection import Connection
from discretion.connection.front import Front
from discretion.connection.stewardship import Stewardship
from discretion.declaration.table import Policy
from discretion.engines import ENGINES
from discretion.mechanisms import MECHANISMS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def blocks(language: str, page: Path = ROOT / "README.md") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


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


@pytest.mark.parametrize(
    "page", [str(page.relative_to(DOCS)) for page in sorted(DOCS.rglob("*.md")) if blocks("python", page)]
)
def test_the_examples_of_a_page_run_one_after_the_other(page, tmp_path):
    script = "\n".join(blocks("python", DOCS / page))
    run = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@cache
def described() -> dict[str, str]:
    """Every command, the subcommands of groups included, and its help."""
    groups = {f"{group.name} ": group.typer_instance for group in app.registered_groups}
    commands = {
        f"{prefix}{command.name or command.callback.__name__}"
        for prefix, group in {"": app, **groups}.items()
        for command in group.registered_commands
    }
    return {name: CliRunner().invoke(app, [*name.split(), "--help"]).output for name in sorted(commands)}


def test_every_option_is_documented():
    documented = (DOCS / "cli.md").read_text()
    for name, told in described().items():
        options = set(re.findall(r"^ +(?:-h, )?(--[a-z-]+)", told, flags=re.MULTILINE))
        assert "--help" in options
        assert [] == [one for one in options if not re.search(rf"{one}(?![a-z-])", documented)], name


def test_commands_shown_in_the_documents_have_the_options_they_use():
    told = described()
    shown = [
        line.removeprefix("$ ")
        for page in (ROOT / "README.md", DOCS / "cli.md")
        for block in blocks("console", page)
        for line in block.splitlines()
        if line.removeprefix("$ ").startswith("discretion ")
    ]
    assert len(shown) >= 10
    for line in shown:
        name = next(name for name in sorted(told, key=len, reverse=True) if line.startswith(f"discretion {name}"))
        assert [] == [option for option in re.findall(r" (--[a-z-]+)", line) if option not in told[name]], line


def test_every_command_is_documented():
    documented = (DOCS / "cli.md").read_text()
    groups = [group.name for group in app.registered_groups]
    commands = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert commands
    for name in filter(None, [*commands, *groups]):
        assert f"discretion {name}" in documented, name


def test_every_error_is_documented_with_who_can_mend_it():
    documented = (DOCS / "errors.md").read_text()
    kinds = [name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(kinds) > 5
    for name in kinds:
        assert f"`{name}`" in documented, name
    told = re.findall(r"^\| `(\w+)` .* \| (\d) \|$", documented, flags=re.MULTILINE)
    assert {(name, str(vars(errors)[name].exit_code)) for name in kinds if name != "DiscretionError"} == set(told)


def test_the_chances_promised_are_those_of_the_allowance_upwards():
    row = r"^\| ([\d.]+) \| ([\d.]+) % \| ([\d.]+) % \| ([\d.]+) % \|$"
    rows = re.findall(row, (DOCS / "promise.md").read_text(), flags=re.MULTILINE)
    assert len(rows) >= 5
    for allowance, *chances in rows:
        for before, told in zip((0.01, 0.1, 0.5), chances, strict=True):
            odds = exp(float(allowance)) * before / (1 - before)
            most = 100 * odds / (1 + odds)
            assert most - 1e-9 <= float(told) <= 1.01 * most, (allowance, before)


def test_every_mechanism_is_documented_and_states_its_theorem():
    documented = (DOCS / "mechanisms.md").read_text()
    for name in MECHANISMS:
        assert f"`{name}`" in documented, name


@pytest.mark.parametrize("path", [*sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md")), "README.md"])
def test_links_between_documents_lead_somewhere(path):
    page = ROOT / path if path == "README.md" else DOCS / path
    for target, section in re.findall(r"\]\(([^)#]+\.(?:md|py|png|svg|ipynb))(?:#([^)]+))?\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{path} -> {target}"
            assert not section or section in sections(page.parent / target), f"{path} -> {target}#{section}"


def sections(page: Path) -> set[str]:
    """The names that links can lead to, as Git hosts and MkDocs make them from headings."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_site_has_every_page_and_needs_no_other(tmp_path):
    """MkDocs is strict: a page outside the navigation, a link or an anchor that leads nowhere is an error."""
    site, environment = tmp_path / "site", dict(os.environ, NO_MKDOCS_2_WARNING="1")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(site)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stdout + run.stderr
    for page in DOCS.rglob("*.md"):
        text = (site / page.relative_to(DOCS).with_suffix(".html")).read_text()
        loaded = re.findall(r'<(?:script|img|iframe)[^>]* src="([^"]+)"|<link rel="stylesheet" href="([^"]+)"', text)
        assert [] == [one for pair in loaded for one in pair if one.startswith(("http:", "https:", "//"))], page
    for name in ("median", "protect", "to_pandas"):
        assert f">{name}" in (site / "reference.html").read_text()


def test_nothing_names_a_place_that_only_its_authors_have():
    private = re.compile(r"/work/|pythonhosted|pypi\.org|/root/")
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    texts = [p for p in tracked if p.endswith((".py", ".md", ".toml", ".lock", ".sql", "Makefile", "run"))]
    assert len(texts) > 30
    for name in texts:
        found = private.findall((ROOT / name).read_text())
        assert name == "tests/test_docs.py" or not found, f"{name}: {found}"


# What is named exists ------------------------------------------------------------------------------------------------

METHODS = [one for one in {**vars(Front), **vars(Stewardship), **vars(Connection)}.values() if callable(one)]
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


@cache
def messages(within: type[ast.AST] = ast.Module) -> str:
    """Return every text of the source code: help, docstrings and errors; or only those within one kind of node."""
    trees = [ast.parse(file.read_text()) for file in sorted((ROOT / "src").rglob("*.py"))]
    outer = [node for tree in trees for node in ast.walk(tree) if isinstance(node, within)]
    nodes = [node for one in outer for node in ast.walk(one)]
    return "\n".join(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


@cache
def named_texts() -> str:
    return "\n".join([messages(), *(page.read_text() for page in PAGES)])


def test_every_option_that_is_named_can_be_given():
    """In docs, help and errors: `--option`. Options of other programs are listed here."""
    others = {"--hidden", "--require-hashes", "--no-deps", "--no-build-isolation"}
    known = {one for told in described().values() for one in re.findall(r"--[a-z][a-z-]*", told)} | {"--version"}
    named = {one.rstrip("-") for one in re.findall(r"(?<![\w-])--[a-z][a-z-]+", named_texts())}
    assert len(named) > 30
    assert set() == named - known - others


def test_every_command_that_is_named_can_be_run():
    commands = {name.split()[0] for name in described()}
    named = set(re.findall(r"discretion ([a-z]+)(?= [A-Z\"\[-]|`|\n| ledger| idp)", named_texts()))
    assert len(named) > 10
    assert set() == named - commands


def test_every_function_and_method_that_is_named_can_be_called():
    """`dn.x` and `db.x(` of the docs, and what errors recommend in backquotes."""
    text = named_texts()
    assert set() == {one for one in re.findall(r"\bdn\.([a-z_]\w*)", text) if not hasattr(discretion, one)}
    assert set() == {one for one in re.findall(r"\bdb\.([a-z_]\w*)", text) if not hasattr(Connection, one)}
    advised = set(re.findall(r"(?:with|run|use) `([a-z_]+)(?:\(\))?`", messages(ast.Raise)))
    assert {"join", "prefer", "refresh"} <= advised
    options = {name for method in METHODS for name in parameters(method)}
    assert set() == {one for one in advised if not (hasattr(Connection, one) or one in options)}


def parameters(method: Callable[..., object]) -> set[str]:
    return set(inspect.signature(method).parameters)


def test_every_keyword_that_errors_recommend_is_an_option():
    taken = {name for method in METHODS for name in parameters(method)}
    taken |= parameters(discretion.connect)
    taken |= {name for one in vars(arrays).values() if inspect.isfunction(one) for name in parameters(one)}
    taken |= {name for propose in MECHANISMS.values() for name in parameters(propose)}
    taken |= set(vars(Policy(largest_share=1.0)))
    said = set(re.findall(r"\b([a-z_]+)=(?:True|None|\[\"|\{\")", messages()))
    assert "separate" in said
    assert set() == said - taken


def test_every_engine_can_be_connected_to(tmp_path):
    for engine in ENGINES:
        discretion.connect(tmp_path / engine, engine=engine).close()
