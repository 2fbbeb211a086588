"""Failure: a database's error becomes a sentence that everybody may read."""

from sqlalchemy.exc import DBAPIError

RESTORE = (
    "To put a copy back, use `discretion restore`: everything charged since the copy was made is forgotten, "
    "and the ledger must say so."
)
_KNOWN: tuple[tuple[tuple[str, ...], str], ...] = (
    (("SQLITE_CORRUPT", "SQLITE_NOTADB", "XX"), f"is damaged. {RESTORE}"),
    (("SQLITE_READONLY_ROLLBACK",), "was being written when its program ended. Open it once where it may be written."),
    (("SQLITE_READONLY", "SQLITE_PERM", "25006", "42501"), "may not be written."),
    (("SQLITE_BUSY", "SQLITE_LOCKED", "55P03", "57014", "40"), "is busy. Try again."),
    (("25P03",), "was kept waiting for too long in the middle of a change. Nothing was changed; try again."),
    (("SQLITE_FULL", "53100"), "cannot be written: the disk is full. Nothing was changed."),
    (("SQLITE_IOERR",), "cannot be read or written: the disk failed. Nothing was changed."),
    (("SQLITE_CANTOPEN", "08", "57P", "53300", "OperationalError"), "cannot be reached."),
    (("22P05", "22021"), "cannot store a text: its encoding has no such character."),
)


def reason(error: BaseException) -> str:
    """Say what went wrong by the database's error code: its own message may quote a person."""
    orig = error.orig if isinstance(error, DBAPIError) else error
    code = str(getattr(orig, "sqlite_errorname", None) or getattr(orig, "sqlstate", None) or type(orig).__name__)
    text = next((text for codes, text in _KNOWN if code.startswith(codes)), "failed.")
    return f"{text} (database code {code})"
