"""The four papers: every table and figure as a value that can be computed. This file has the one list of them."""

from collections.abc import Iterable

from discretion.errors import InvalidDeclaration
from discretion.papers import hdp, idp, idp_examples, partitioning, pdp, regression, svm
from discretion.papers.figure import Effort, Figure, Outcome, reproduce

_MODULES = (pdp, regression, idp, idp_examples, partitioning, svm, hdp)
FIGURES: dict[str, Figure] = {figure.id: figure for module in _MODULES for figure in module.FIGURES}


def find(ids: Iterable[str]) -> list[Figure]:
    """The figures with these IDs; all of them for none."""
    wanted = list(ids) or list(FIGURES)
    unknown = [name for name in wanted if name not in FIGURES]
    if unknown:
        raise InvalidDeclaration(f"A figure must be one of {', '.join(FIGURES)}, got {', '.join(unknown)}.")
    return [FIGURES[name] for name in wanted]


__all__ = ["FIGURES", "Effort", "Figure", "Outcome", "find", "reproduce"]
