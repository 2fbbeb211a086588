"""Extras: which libraries each optional part needs, and what to install if one of them is missing."""

from importlib.util import find_spec

from discretion.errors import InvalidDeclaration

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
