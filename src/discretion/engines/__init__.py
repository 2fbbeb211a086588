"""Engines turn rows into statistics: one `Engine`, and a `Backend` for each database."""

from discretion.engines.backend import Admission, Backend
from discretion.engines.engine import Engine
from discretion.engines.memory import is_object
from discretion.engines.rows import Cohorts, Rows

__all__ = ["Admission", "Backend", "Cohorts", "Engine", "Rows", "is_object"]
