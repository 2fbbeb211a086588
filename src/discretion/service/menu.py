"""Menu: the levels that a person may choose, and what each would mean for them. Nothing here depends on the data."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from discretion.declaration.enrolment import Enrolment
from discretion.declaration.table import Table
from discretion.ledger import Receipt, Register
from discretion.ledger.chance import BEFORE, Chance, chance
from discretion.preference import MICRO

MOST_LEVELS = 12  # that are shown; others can be typed in


@dataclass(frozen=True, kw_only=True)
class Level:
    """One level on offer, and what it means."""

    epsilon: float
    names: tuple[str, ...]  # that the steward gave it
    reach: float  # what all answers ever can reveal: the level, or what was used already if that is more
    chances: tuple[Chance, ...]  # what somebody can believe at most, for each of `BEFORE`
    left: float  # what could still be used of it, given what was used already
    held: bool

    @property
    def title(self) -> str:
        """Return what the level is called."""
        if self.epsilon == 0:
            return "Do not use my data"
        names = " or ".join(f"“{name}”" for name in self.names)
        return f"{names}: an allowance of {self.epsilon:,.10g}" if names else f"An allowance of {self.epsilon:,.10g}"


@dataclass(frozen=True, kw_only=True)
class Menu:
    """Every level that one person may choose."""

    levels: tuple[Level, ...]
    held: Level
    start: tuple[
        Chance, ...
    ]  # what somebody believes before, for each of `BEFORE`, of the same wholes as in the levels
    complete: bool  # all levels are shown
    chosen: bool  # the person chose the level held; else it came with the register
    certain: tuple[str, ...]  # tables where somebody certain that the person is in them can reach twice as far
    tables: tuple[Table, ...]  # that the allowance pays for


def menu(register: Register, tables: Sequence[Table], receipt: Receipt) -> Menu:
    """Return what is on offer for the owner of a receipt."""
    enrolment = Enrolment.from_json(register.source)
    names: dict[int, list[str]] = {}
    for name, epsilon in enrolment.levels.items():
        names.setdefault(round(epsilon * MICRO), []).append(name)
    held = round(receipt.allowance * MICRO)
    offered = sorted({0, *register.levels, held})
    shown = offered if len(offered) <= MOST_LEVELS else _few(offered, {0, held, *names})
    spent = round(receipt.spent * MICRO)
    least = _whole({max(micro, spent) for micro in shown})
    made = {micro: _level(micro, tuple(names.get(micro, ())), spent, held, least) for micro in {*shown, held}}
    paid = tuple(table for table in tables if table.register == register.name)
    return Menu(
        levels=tuple(made[micro] for micro in shown),
        held=made[held],
        start=tuple(chance(before, 0, least=least) for before in BEFORE),
        complete=shown == offered,
        chosen=receipt.statements[-1].by == "person",
        certain=tuple(table.name for table in paid if table.protects == "presence"),
        tables=paid,
    )


def _whole(levels: Collection[int]) -> int:
    """Return 100, or 1,000 if some levels would look alike otherwise."""
    coarse = {chance(0.1, micro / MICRO) for micro in levels}
    return 100 if len(coarse) == len(levels) else 1_000


def _few(offered: Sequence[int], wanted: set[int]) -> list[int]:
    """Return the wanted ones among many levels, and others that are spread evenly between them."""
    kept = [micro for micro in offered if micro in wanted][:MOST_LEVELS]
    room = MOST_LEVELS - len(kept)
    others = [micro for micro in offered if micro not in wanted]
    spread = [others[place * len(others) // room] for place in range(room)] if room else []
    return sorted({*kept, *spread})


def _level(micro: int, names: tuple[str, ...], spent: int, held: int, least: int) -> Level:
    reach = max(micro, spent) / MICRO
    return Level(
        epsilon=micro / MICRO,
        names=names,
        reach=reach,
        chances=tuple(chance(before, reach, least=least) for before in BEFORE),
        left=max(0, micro - spent) / MICRO,
        held=micro == held,
    )
