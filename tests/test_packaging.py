"""Packaging: container files pass their linters, and versions are declared."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


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
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"version: {version}" in (ROOT / "CITATION.cff").read_text()
