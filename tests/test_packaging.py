"""Packaging: the wheel works with its base dependencies alone, container files pass their linters."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from discretion.errors import EXTRAS

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NEEDS = """
import json
import discretion as dn
from discretion import errors, learn

def told(act):
    try:
        act()
    except dn.DiscretionError as refusal:
        return str(refusal)

release = dn.mean([1.0, 2.0], epsilon=1, bounds=(0, 3), assume="gradual")
person = {"person": "id", "epsilon": "eps"}
open("book.xlsx", "w").close()
print(json.dumps({
    "serve": told(lambda: dn.connect("https://localhost:1", token="t")),
    "postgres": told(lambda: dn.connect("postgresql://localhost/x").tables()),
    "spark": told(lambda: dn.connect(":memory:", engine="spark").protect("t", "people.csv", **person)),
    "excel": told(lambda: dn.connect(":memory:").protect("t", "book.xlsx", **person)),
    "lakehouse": told(lambda: dn.connect(":memory:").protect("t", "lake", **person)),
    "learn": told(lambda: learn.LinearRegression),
    "plots": told(release.plot_relation),
    "pandas": told(release.to_pandas),
    "oidc": told(lambda: errors.require("oidc", "Signing in")),
    "peers": told(lambda: errors.require("peers", "Comparing profiles")),
}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True)
    return next(folder.glob("*.whl"))


def needed(requirements: Sequence[str]) -> Iterator[Distribution]:
    """Return the installed libraries that these need, and what those need in turn."""
    seen, left = set(), [Requirement(one) for one in requirements]
    while left:
        one = left.pop()
        if one.name not in seen and (one.marker is None or one.marker.evaluate({"extra": ""})):
            seen.add(one.name)
            found = distribution(one.name)
            yield found
            left += map(Requirement, found.requires or [])


@pytest.fixture(scope="module")
def bare(tmp_path_factory, wheel) -> Path:
    """Return the programs of an environment that has the wheel and its base dependencies, and nothing else."""
    home = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    (site,) = home.glob("lib/python*/site-packages")
    for library in needed(PROJECT["dependencies"]):
        for top in {file.parts[0] for file in library.files or ()} - {"..", "__pycache__"}:
            (site / top).symlink_to(str(library.locate_file(top)))
    pip = [sys.executable, "-m", "pip", "--python", home / "bin" / "python", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--no-index", "--no-compile", wheel], check=True)
    return home / "bin"


def alone(*command: object, folder: Path, code: int = 0) -> str:
    """Run a program that sees nothing of this project but what is installed; return what it prints."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DISCRETION"))}
    run = subprocess.run(list(map(str, command)), cwd=folder, env=kept, capture_output=True, text=True)
    assert code == run.returncode, run.stdout + run.stderr
    return run.stdout + run.stderr


def asks_about_a_file(program: Path, folder: Path) -> None:
    """Protect a CSV file and ask about it, on the command line."""
    (folder / "people.csv").write_text("id,age,eps\n" + "".join(f"{n},40,1\n" for n in range(50)))
    assert "protect" in alone(program, "--help", folder=folder)
    declared = ("--person", "id", "--epsilon", "eps", "--bounds", "age=0:120")
    assert "0 to 120" in alone(program, "protect", "people", "people.csv", *declared, folder=folder)
    answer = json.loads(alone(program, "query", "SELECT COUNT(*) AS n FROM people", "--json", folder=folder))
    assert [{"n": 50}] == answer["rows"]


def test_the_wheel_answers_with_its_base_dependencies_alone(bare, tmp_path):
    asks_about_a_file(bare / "discretion", tmp_path)


def test_a_missing_extra_is_named_with_what_to_install(bare, tmp_path):
    (tmp_path / "people.csv").write_text("id,eps\n1,1\n")
    (tmp_path / "lake" / "_delta_log").mkdir(parents=True)
    told = json.loads(alone(bare / "python", "-c", NEEDS, folder=tmp_path))
    assert set(EXTRAS) | {"pandas"} == set(told)
    for extra, text in told.items():
        package = extra if extra == "pandas" else f"'discretion[{extra}]'"
        assert f"not installed. Install it with: pip install {package}" in text, extra


def test_extras_name_libraries_that_they_install():
    declared = set(PROJECT["optional-dependencies"]) - {"dev"}
    assert declared == set(EXTRAS)


INTERPRETERS = [
    path
    for minor in (12, 13, 14)
    for path in [
        *Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"),
        *Path("/usr").glob(f"bin/python3.{minor}"),
    ][:1]
]


@pytest.mark.slow
@pytest.mark.parametrize("python", INTERPRETERS, ids=lambda path: path.parent.parent.name)
def test_other_versions_of_python_install_the_wheel_and_ask(python, wheel, tmp_path):
    """Versions that this machine has; base dependencies are fetched as a user would."""
    subprocess.run([python, "-m", "venv", tmp_path / "env"], check=True)
    subprocess.run([tmp_path / "env" / "bin" / "pip", "install", "--quiet", wheel], check=True)
    asks_about_a_file(tmp_path / "env" / "bin" / "discretion", tmp_path)


def test_the_container_file_passes_its_linter():
    run = subprocess.run([BIN / "hadolint", "Containerfile"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_compose_file_passes_its_linter():
    rules = "{extends: default, rules: {line-length: {max: 120}}}"
    run = subprocess.run(
        [BIN / "yamllint", "-s", "-d", rules, "compose.yaml"], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_citation_has_the_version_of_the_package():
    assert f"version: {PROJECT['version']}" in (ROOT / "CITATION.cff").read_text()
