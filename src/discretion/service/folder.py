"""Folder: a source that a steward names by HTTP must be a file below the folder that the operator gave."""

from collections.abc import Iterable
from glob import glob
from pathlib import Path

from discretion.errors import InvalidDeclaration

OUTSIDE = "A source must be a file below the folder that the service's operator gave with --data, got {given!r}."


def inside(folder: Path | None, given: str) -> str:
    """Return the full place of a source below `folder`; refuse URLs, other folders and links that lead out of it."""
    if folder is None:
        raise InvalidDeclaration(
            "This service was started without --data, so sources cannot be named by HTTP. Use the command line of the "
            "machine that holds the data, or ask its operator."
        )
    root = folder.resolve()
    path, mark, table = given.partition("#")
    refused = InvalidDeclaration(OUTSIDE.format(given=given))
    if "://" in given or any(not sign.isprintable() for sign in given) or ".." in Path(path).parts or not path:
        raise refused
    place = root / path
    try:
        found = [place] if place.exists() else [Path(one) for one in glob(str(place))]
    except OSError:  # a name that is too long
        raise refused from None
    if not found or not _are_below(found, root):
        raise refused
    ending = "/" if given.endswith("/") else ""
    return f"{place}{ending}{mark}{table}"


def refuse_new_links(folder: Path | None, places: Iterable[str]) -> None:
    """Refuse a source that was below `folder` when it was admitted, if it leads out of it now: a link was put there."""
    if folder is None:
        return
    root = folder.resolve()
    for place in places:
        path = Path(place.partition("#")[0])
        found = [path] if path.exists() else [Path(one) for one in glob(str(path))]
        if path.is_relative_to(root) and not _are_below(found, root):
            raise InvalidDeclaration(OUTSIDE.format(given=str(path.relative_to(root))))


def _are_below(found: Iterable[Path], root: Path) -> bool:
    """Tell whether all files and folders are below a folder, and all that is in them."""
    found = list(found)
    if not all(_is_below(one, root) for one in found):  # before a folder is looked into
        return False
    return all(_is_below(one, root) for folder in found if folder.is_dir() for one in folder.rglob("*"))


def _is_below(path: Path, root: Path) -> bool:
    try:
        return path.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError, ValueError):
        return False
