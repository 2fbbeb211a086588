"""The whole error tree, who can mend each error, and what to install if a library is missing.

DiscretionError
├── InvalidPreference   a privacy choice is malformed             → whoever wrote the specification
├── InvalidDeclaration  bounds, keys, shapes or options are wrong → whoever wrote the call
├── QueryRefused        this cannot be answered privately         → whoever wrote the query
│   └── Unsuitable      this mechanism cannot answer this query   → whoever chose the mechanism
├── BudgetExhausted     someone who is asked cannot pay           → the data owner
├── PlanOutdated        preferences changed since planning        → ask again
├── SourceChanged       data or register differ from the snapshot → the data owner (refresh)
├── TableStopped        an earlier question failed                → the steward (resume)
├── EngineFailed        the database failed                       → the operator (details in their log)
├── AccessDenied        not signed in, or not allowed to do this  → whoever signs in, or the steward
├── ServiceFailed       the service is busy or cannot be reached  → try again, or the operator
├── PeerRefused         another peer broke the protocol or refused → whoever runs that peer
├── LedgerFailed        the ledger cannot be opened or written    → the operator
└── LedgerCorrupt       recorded charges do not add up            → the auditor

No message quotes a value from a row, a person or a person's balance.
"""

from collections import abc
from difflib import get_close_matches
from importlib.util import find_spec

WIDEST = 100  # characters of a line that are shown around the place of a mistake


class DiscretionError(Exception):
    """Anything discretion refuses or fails to do."""

    exit_code = 2  # of the command line: refused, or wrong usage


class InvalidPreference(DiscretionError, ValueError):
    """A privacy choice is malformed."""


class InvalidDeclaration(DiscretionError, ValueError):
    """Bounds, keys, shapes or options are wrong."""


class QueryRefused(DiscretionError):
    """This question cannot be answered privately. It knows where in the question the reason is, if that is known."""

    start: int | None = None  # the place in the text, counted from 0
    line: int | None = None  # counted from 1, like the column
    column: int | None = None
    excerpt: str = ""  # the line, and a caret under the place

    def locate(self, sql: str) -> None:
        """Find line and column of `start` in the text that was asked."""
        if self.start is None or self.line is not None or not 0 <= self.start <= len(sql):
            return
        before = sql[: self.start]
        self.line, self.column = before.count("\n") + 1, self.start - before.rfind("\n")
        text = "".join(sign if sign.isprintable() else " " for sign in sql.split("\n")[self.line - 1])
        first = max(0, self.column - 1 - WIDEST * 3 // 4) if len(text) > WIDEST else 0
        self.excerpt = f"{text[first : first + WIDEST]}\n{' ' * (self.column - 1 - first)}^"
        self.add_note(f"line {self.line}, column {self.column}:\n{self.excerpt}")  # shown by Python's own traceback


class Unsuitable(QueryRefused):
    """This mechanism cannot answer this question; another may."""


class BudgetExhausted(DiscretionError):
    """Somebody who is asked to pay cannot."""

    exit_code = 3


class PlanOutdated(DiscretionError):
    """Preferences or balances changed between planning and charging; nothing was charged."""


class SourceChanged(DiscretionError):
    """The data or the register is not the one that was enrolled."""


class TableStopped(DiscretionError):
    """A question about these people failed after its charge; all others wait for the steward."""

    exit_code = 4
    sentence = "Questions about this table are stopped: an earlier one failed. Ask the data owner to look into it."


class EngineFailed(DiscretionError):
    """The database failed; its own message may quote a private value and is not shown."""

    exit_code = 4


class AccessDenied(DiscretionError):
    """Nobody is signed in, or the one who is may not do this."""


class ServiceFailed(DiscretionError):
    """The service is busy, cannot be reached, or said something unexpected."""

    exit_code = 4


class PeerRefused(DiscretionError):
    """Another peer cannot be reached, could not prove who it is, or said something the protocol does not allow."""

    exit_code = 4


class LedgerFailed(DiscretionError):
    """The ledger cannot be opened or written."""

    exit_code = 4


class LedgerCorrupt(DiscretionError):
    """The recorded charges do not add up."""

    exit_code = 4


def did_you_mean(name: str, known: abc.Iterable[str]) -> str:
    """Return " Did you mean 'age'?" for the nearest known name, "" if none is near."""
    spelled = {one.lower(): one for one in known}
    nearest = get_close_matches(name.lower(), spelled, n=1, cutoff=0.7)
    return f" Did you mean {spelled[nearest[0]]!r}?" if nearest else ""


# Extras -------------------------------------------------------------------------------------------------------------

EXTRAS = {
    "postgres": ("psycopg", "adbc_driver_postgresql"),
    "excel": ("python_calamine",),
    "plots": ("matplotlib",),
    "learn": ("sklearn",),
    "peers": ("cryptography", "gmpy2", "phe"),
    "serve": ("starlette", "uvicorn", "jinja2", "httpx", "segno"),
    "oidc": ("joserfc",),
    "spark": ("pyspark",),
    "lakehouse": ("deltalake", "pyiceberg"),
}
KNOWN_AS = {"sklearn": "scikit-learn", "matplotlib": "Matplotlib", "python_calamine": "python-calamine"}


def require(extra: str, what: str, *libraries: str) -> None:
    """Refuse `what` if a library of an extra is missing, and say what to install."""
    if told := missing(extra, what, *libraries):
        raise InvalidDeclaration(told)


def missing(extra: str, what: str, *libraries: str) -> str:
    """Say which libraries `what` lacks and what to install; '' if nothing is missing."""
    lacking = [one for one in libraries or EXTRAS.get(extra, (extra,)) if find_spec(one) is None]
    return needed(extra, what, *lacking) if lacking else ""


def needed(extra: str, what: str, *lacking: str) -> str:
    """Say that `what` needs these libraries, and what to install."""
    names = ", ".join(KNOWN_AS.get(one, one) for one in lacking)
    verb = "is" if len(lacking) == 1 else "are"
    package = f"'discretion[{extra}]'" if extra in EXTRAS else extra
    return f"{what} needs {names}, which {verb} not installed. Install it with: pip install {package}"
