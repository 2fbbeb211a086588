"""The structure of the package is a promise too: who may import whom, and what is public."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import discretion

SRC = Path(discretion.__file__).parent

LAYERS = [
    "errors",
    "render release.calendar",
    "preference",
    "guarantee noise release.relation",
    "release.error",
    "statistics release",
    "declaration",
    "query",
    "mechanisms engines ledger",
    "plan",
    "answer.question answer.propagation",
    "answer.derived answer.drawn",
    "answer.state answer.compound",
    "answer arrays",
    "answer.outlook connection.protection connection.front",
    "connection.stewardship",
    "connection",
    "learn social",
    "papers",
    "peers service",  # `connect` loads the service's client by name: it needs an extra
    "cli",
]
RANK = {module: rank for rank, layer in enumerate(LAYERS) for module in layer.split()}
NEVER = {("plan", "engines"), ("plan", "ledger")}  # the choice may not depend on the data


def layer(module: str) -> str:
    """The layer that a module is in: its own name, or that of its folder."""
    return module if module in RANK else module.split(".")[0]


def named(path: Path) -> str:
    """The name of the module that a file holds."""
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> Iterator[str]:
    """The layers of the package that a file imports from, wherever in the file it does so."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("discretion."):
            inside = node.module.removeprefix("discretion").removeprefix(".")
            for name in node.names:
                one = f"{inside}.{name.name}".removeprefix(".")
                yield layer(one) if one in RANK else layer(inside or one)
        elif isinstance(node, ast.Import):
            found = (name.name.removeprefix("discretion.") for name in node.names)
            yield from (layer(one) for one, name in zip(found, node.names, strict=True) if one != name.name)


def test_imports_point_down():
    for path in SRC.rglob("*.py"):
        here = layer(named(path))
        for there in set(imports(path)) - {here} if here not in ("__init__", "__main__") else ():
            assert RANK[there] < RANK[here] and (here, there) not in NEVER, f"{here} imports {there}"  # noqa: PT018


def test_the_check_would_notice_an_import_that_points_up(tmp_path):
    (tmp_path / "plan.py").write_text("from discretion.engines import duckdb\n")
    assert ["engines"] == list(imports(tmp_path / "plan.py"))
    assert ("plan", "engines") in NEVER
    (tmp_path / "state.py").write_text(
        "from discretion.answer import outlook\nfrom discretion.answer.derived import x\n"
    )
    assert ["answer.outlook", "answer.derived"] == list(imports(tmp_path / "state.py"))


def test_every_file_has_a_layer():
    modules = {layer(named(path)) for path in SRC.rglob("*.py")}
    assert modules - {"__init__", "__main__"} == set(RANK)


def test_public_names_exist_and_are_few():
    assert sorted(set(discretion.__all__)) == sorted(discretion.__all__)
    assert all(hasattr(discretion, name) for name in discretion.__all__)
    assert len(discretion.__all__) <= 30


LIBRARIES = "numpy scipy pyarrow sqlalchemy sqlglot opendp rich duckdb pyspark sklearn matplotlib pandas polars psycopg"
# How somebody may begin, and which of these libraries that needs.
STARTS = {
    "import discretion": "",
    "from discretion.cli import main; main()": "",  # --help
    "import discretion as dn; dn.connect(sys.argv[-1]).tables()": "numpy pyarrow sqlalchemy sqlglot",
}


@pytest.mark.parametrize(("program", "allowed"), STARTS.items())
def test_a_library_is_loaded_by_those_who_use_it(program, allowed, tmp_path):
    check = f"""import sys
try:
    {program}
except SystemExit:
    pass
loaded = {{*{LIBRARIES.split()}}} & set(sys.modules) - {{*{allowed.split()}}}
sys.exit(', '.join(sorted(loaded)))"""
    command = [sys.executable, "-c", check, "--help", str(tmp_path / "new.discretion")]
    run = subprocess.run(command, capture_output=True, text=True)
    assert "" == run.stderr.strip()


def test_public_names_are_found_when_they_are_used():
    assert set(discretion.__all__) <= set(dir(discretion))
    assert discretion.max is import_module("discretion.arrays").maximum
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        discretion.nothing  # noqa: B018


def test_only_noise_draws_randomness():
    for path in SRC.rglob("*.py"):
        text = path.read_text()
        if path.name != "noise.py":
            assert "urandom" not in text, path.name
            assert "default_rng" not in text, path.name


def test_two_classes_never_share_a_name():
    found: dict[str, list[str]] = {}
    for path in SRC.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(str(path.relative_to(SRC)))
    assert {} == {name: files for name, files in found.items() if len(files) > 1}
