"""Later: a module that is loaded when something of it is used, so that no command waits for what it does not need."""

from importlib import import_module
from typing import Any


class Later:
    """Stands for the module of this name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, defined: str) -> Any:
        return getattr(import_module(self._name), defined)
