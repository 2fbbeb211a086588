"""A request becomes one SQL text and the small tables it joins; an engine only renders and runs it.

read     one row of the table: whose it is, its keys, their preference or cohort, and its values on the grid
bound    at most rows_per_person of them a person
count    whole numbers by key and cohort (and by grid value, for histograms)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from sqlglot import exp

from discretion.engines.bounding import by_join, by_list, by_window, unlisted
from discretion.engines.buffer import column_of, table_of
from discretion.engines.choice import DIGITS, keyed_digest, with_coins
from discretion.engines.column import Column, aggregates, columns_of, not_null, number, parts, place_of, stepped
from discretion.engines.gathering import Whose, put_together
from discretion.engines.keytable import key_table
from discretion.engines.lookup import looked_up
from discretion.engines.packing import spans
from discretion.engines.partnership import read_beside, with_partners
from discretion.engines.person import among_texts, is_number, person_text, preference, same_person
from discretion.engines.rows import Rows
from discretion.engines.slot import by_slot, is_counted
from discretion.query import Key
from discretion.query.gather import OWN, PERSON
from discretion.query.kind import noted
from discretion.query.scalar import ROW
from discretion.statistics import Measure

_ONE = exp.Literal.number(1)
FEW = 32  # preferences that are compared one by one, where every row is counted by its cohort


@dataclass(frozen=True, kw_only=True, eq=False)
class Beside:
    """The protected rows with a number next to each that says its owner's cohort; no register needs to be joined."""

    rows: exp.Expr  # what to read instead of the table alone
    number: str  # the column of numbers; empty: there is none
    cohorts: Mapping[int, int]  # number -> cohort; rows with other numbers are left out
    tables: Mapping[str, pa.Table]
    whose: Whose | None = None  # numbers say a row's owner, too
    met: frozenset[str] = frozenset()  # columns of partners, by `beside_name`


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Holds what was found out about the sources in their present state. It saves work and never changes an answer."""

    person: str  # SQL types
    epsilon: str
    register_person: str = ""
    owned: bool = False  # every row has an owner
    bounded: bool = False  # nobody has more than rows_per_person rows
    unique: bool = False  # nobody is twice in the register
    beside: Beside | None = None  # cohorts next to the rows
    windowed: bool = False  # bound rows by one window per person: the database would compute a CTE again for every use
    busy: str = ""  # the place of a list of everybody with more than rows_per_person rows: p, and a number, `whose`
    single: frozenset[str] = frozenset()  # tables joined on the person in which nobody has two rows


def declared_facts(rows: Rows, register: Mapping[str, str]) -> Facts:
    """Return what the declaration says, before anything was found out; `register` has a separate register's types."""
    types, cohorts = rows.query.table.columns, rows.cohorts
    return Facts(
        person=types[rows.query.table.person],
        epsilon=register[cohorts.epsilon] if register else types.get(rows.query.table.epsilon, ""),
        register_person=register[cohorts.person] if register else "",
    )


@dataclass(frozen=True, kw_only=True)
class Statement:
    """Says what an engine runs: a SELECT over sources and small tables, both by the names the text uses.

    It gives columns g and c (group and cohort), the histograms' columns and n (rows), a column `<name>_all` each that
    is 1 where a row is not about that histogram, and `<name>_n`, `_s`, `_q`: counts, sums, sums of squares.
    """

    select: exp.Query
    sources: dict[str, str]
    tables: dict[str, pa.Table]
    columns: tuple[Column, ...]
    names: tuple[str, ...]  # the column of each measure


def statement(rows: Rows, measures: Sequence[Measure], facts: Facts, key: str) -> Statement:
    """The SQL for `measures`; `key` is the secret of this release's coins and row choices."""
    columns, names = columns_of(rows.query.asked, measures)
    build = _Build(rows, columns, facts, key)
    kept = build.read()
    gathered = rows.query.gathered
    bounds = build.can_exceed and not facts.bounded and (gathered is None or gathered.exceeds)
    select: exp.Query
    if bounds and build.subtracts:
        select = build.less(kept)
    else:
        select = build.count(build.bound(kept) if bounds else kept, placed=bounds)
    return Statement(select=select, sources=build.sources, tables=build.tables, columns=columns, names=names)


@dataclass
class _Build:
    """The three steps, and the sources and small tables they come to need."""

    rows: Rows
    columns: tuple[Column, ...]
    facts: Facts
    key: str
    sources: dict[str, str] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)

    @property
    def can_exceed(self) -> bool:
        """Counting people once each, in one group, needs no bound on their rows."""
        return bool(self.rows.query.keys) or any(c.asked.aggregate.kind != "people" for c in self.columns)

    @property
    def sampled(self) -> bool:
        return any(column.inclusion is not None for column in self.columns)

    @property
    def apart(self) -> bool:
        """Return whether preferences are not beside the rows: a register or changes are to be joined in."""
        cohorts = self.rows.cohorts
        return not self.numbered and bool(cohorts.register or cohorts.changes is not None)

    @property
    def numbered(self) -> bool:
        """Return whether there is a number beside every row that says its owner's cohort."""
        return self.facts.beside is not None and bool(self.facts.beside.number)

    @property
    def late(self) -> bool:
        """Return whether rows are counted by preference, so that cohorts are looked up in the small result."""
        return not (self.apart or self.sampled or self.early)

    @property
    def early(self) -> bool:
        """Return whether a row's cohort is found by comparing its preference with each of a few."""
        few = self.facts.windowed and len(self.rows.cohorts.levels) <= FEW
        return few and not (self.apart or self.sampled)

    @property
    def subtracts(self) -> bool:
        """Return whether all rows are counted, and those that bounding leaves out are taken away again.

        Only the rows of people on the list are looked at twice then. People cannot be taken away from a count of them.
        """
        return bool(self.facts.busy) and all(column.asked.aggregate.kind != "people" for column in self.columns)

    def read(self) -> exp.Select:
        """Return whose row, in which cohort (or with which preference), its keys, its values."""
        query, person = self.rows.query, exp.column(self.rows.query.table.person, table=ROW, quoted=True)
        source = self._owned(person)
        if query.gathered is not None:
            whose = None if self.facts.beside is None else self.facts.beside.whose
            own = None if self.apart and self.rows.cohorts.register else self._stated()
            source = put_together(source, (person, own), query.gathered, self._key_join, whose)
            person = exp.column(PERSON, table=ROW)
            owner = person, self.facts.person
            source = with_partners(source, owner, self.rows, self.facts.single, self.key, after=True)
        source = self._membership(source.select(exp.alias_(person, "p"), copy=False), person)
        source = source.where(*(one.copy() for one in query.where), copy=False)
        source = source.select(*(exp.alias_(key.expression, key.name) for key in query.keys), copy=False)
        for column in self.columns:
            if not column.bare:
                source = source.select(exp.alias_(column.raw, column.name), copy=False)
        return self._on_grid(source if self.facts.beside is None else read_beside(source, self.facts.beside.met))

    def _owned(self, person: exp.Expr) -> exp.Select:
        """Return the rows that have an owner, with their lookups, as a SELECT without columns."""
        self.sources["protected"] = self.rows.query.table.source
        beside = self.facts.beside
        rows = exp.table_("protected") if beside is None else beside.rows
        self.tables |= {} if beside is None else beside.tables
        source = exp.select().from_(exp.alias_(rows, ROW, table=True), copy=False)
        if not self.facts.owned:
            source = source.where(not_null(person.copy()), copy=False)
        if self.rows.query.partners:
            self.sources |= {partner.name: partner.table.source for partner in self.rows.query.partners}
            single, met = self.facts.single, frozenset[str]() if beside is None else beside.met
            source = with_partners(source, (person, self.facts.person), self.rows, single, self.key, met=met)
        for joined in self.rows.query.lookups:
            self.sources[joined.name] = joined.lookup.source
            source = looked_up(source, joined, self.rows.query.table.longest_text)
        return source

    def bound(self, kept: exp.Select) -> exp.Select:
        """At most k rows a person: every n/k-th of their n rows, ordered by content, from a keyed random start.

        Which are chosen depends on that person's rows and the key alone, so one person's rows never move another's;
        and every row has the same chance k/n. People within the bound are not touched.
        """
        most = self.rows.query.rows_per_person
        names = self._contents
        if self.facts.busy:
            rows = unlisted(self._placed_keys(kept.copy()), names)
            both = exp.union(rows, self._listed(kept, taken=True), distinct=False, copy=False)
            return exp.select(exp.Star()).from_(both.subquery("both", copy=False), copy=False)
        kept = self._placed_keys(kept)
        if self.facts.windowed:
            return by_window(kept, names, most, self._row_digest())
        return by_join(kept, names, most, self._row_digest())

    def less(self, kept: exp.Select) -> exp.Query:
        """Count all rows, and take away what bounding leaves out: both are whole numbers."""
        less = self.count(self._listed(kept.copy(), taken=False), placed=True)
        totals = {"n", *(f"{column.name}_{part}" for column in self.columns for part in parts(column))}
        for total in [shown.unalias() for shown in less.expressions if shown.alias_or_name in totals]:
            total.replace(exp.Neg(this=noted(exp.paren(total.copy()), "HUGEINT")))
        return exp.union(self.count(kept, placed=False), less, distinct=False, copy=False)

    @property
    def _contents(self) -> list[str]:
        """Return the columns that a person's rows are ordered by."""
        keys = [key.name for key in self.rows.query.keys]
        return [*keys, *(column.name for column in self.columns if not column.bare), "c"]

    def _listed(self, kept: exp.Select, *, taken: bool) -> exp.Select:
        """Return the rows to count, or those to leave out, of everybody on the list of people above k."""
        self.sources["busy"] = self.facts.busy
        known = spans(self.rows.query.keys, self.columns, 0 if self.late else self.rows.cohorts.count)
        kept = self._placed_keys(kept, side="left" if len(known) == len(self._contents) else "")
        return by_list(kept, self._contents, known, self._row_digest(), self.rows.query.rows_per_person, taken=taken)

    def _row_digest(self) -> exp.Expr:
        """Return the digest of person p that decides about their rows."""
        return keyed_digest(self.key, person_text(exp.column("p"), self.facts.person), DIGITS, label="rows")

    def count(self, kept: exp.Select, *, placed: bool) -> exp.Select:
        """Count by raw key and preference, then look up what these few stand for."""
        keys = [key.name for key in self.rows.query.keys]
        if self.facts.windowed and not self.late and (placed or not keys) and len(self._sets(keys)) == 1:
            return by_slot(kept, self.rows.query.keys, self.columns, self.rows.cohorts.count, single=self._single)
        inner, with_ = kept, kept.args.pop("with_", None)
        counted = self._counted(keys).from_(inner.subquery("kept_rows", copy=False), copy=False)
        histograms = [column.name for column in self.columns if column.histogram]
        sums = [f"{c.name}_{part}" for c in self.columns for part in parts(c)]
        group: exp.Expr = exp.Literal.number(0)
        outer = exp.select().from_(counted.subquery("counted", copy=False), copy=False)
        for key in self.rows.query.keys:
            group = exp.Add(
                this=exp.Mul(this=exp.paren(group), expression=number(len(key.values))), expression=_place(key, placed)
            )
            outer = outer if placed else self._key_join(outer, key, "counted")
        cohort: exp.Expr = exp.column("c", table="counted")
        if self.early:
            outer = outer.where(is_counted(cohort, ["n", *sums][0 if histograms else 1]), copy=False)
        if self.late:
            self._levels()
            match = exp.NullSafeEQ(this=cohort, expression=exp.column("preference", table="levels"))
            outer, cohort = outer.join(exp.table_("levels"), on=match, copy=False), exp.column("cohort", table="levels")
        shown = list(histograms) + [f"{name}_all" for name in histograms if len(self._sets(keys)) > 1]
        outer = outer.select(exp.alias_(group, "g"), exp.alias_(cohort, "c"), *map(exp.column, shown), copy=False)
        added = ["n", *sums] if histograms else sums
        totals = (exp.Sum(this=noted(exp.column(name), "HUGEINT")) for name in added)
        outer = outer.select(*map(exp.alias_, totals, added), copy=False)
        outer = outer.group_by(*(exp.Literal.number(i + 1) for i in range(2 + len(shown))), copy=False)
        if with_ is not None:
            outer.set("with_", with_)
        return outer

    def _sets(self, keys: Sequence[str]) -> list[list[str]]:
        """Return what is counted by: keys and preference, and for each histogram its values too."""
        base = [*keys, "c"]
        plain = [base] if any(column.moments for column in self.columns) else []
        return [*plain, *([*base, column.name] for column in self.columns if column.histogram)]

    def _counted(self, keys: Sequence[str]) -> exp.Select:
        sets = self._sets(keys)
        histograms = [column.name for column in self.columns if column.histogram]
        counted = exp.select(*map(exp.column, [*keys, "c", *histograms]))
        if histograms:
            counted = counted.select(exp.alias_(exp.Count(this=exp.Star()), "n"), copy=False)
        if len(sets) == 1:
            counted = counted.group_by(*map(exp.column, sets[0]), copy=False)
        else:
            tuples = [exp.Tuple(expressions=[exp.column(name) for name in one]) for one in sets]
            counted.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=tuples)]))
            marks = [exp.Anonymous(this="GROUPING", expressions=[exp.column(name)]) for name in histograms]
            counted = counted.select(
                *(exp.alias_(mark, f"{name}_all") for mark, name in zip(marks, histograms, strict=True))
            )
        for column in self.columns:
            counted = counted.select(*aggregates(column, self._single), copy=False)
        return counted

    @property
    def _single(self) -> bool:
        """Return whether nobody has two of the rows that are counted."""
        return self.rows.query.rows_per_person == 1 and (self.can_exceed or self.facts.bounded)

    def _membership(self, source: exp.Select, person: exp.Expr) -> exp.Select:
        """Add column c: the preference as found, or, where it takes more than that column to know, the cohort."""
        cohorts = self.rows.cohorts
        if self.late:
            return source.select(exp.alias_(self._own(), "c"), copy=False)
        self._levels()
        if self.apart and cohorts.register:
            self.sources["register"] = cohorts.register
            side = "left" if cohorts.changes is not None else ""
            types = self.facts.person, self.facts.register_person
            mine, theirs = same_person(person, exp.column("person", table="m"), *types)
            source = source.join(self._members(), on=mine.eq(theirs), join_type=side, join_alias="m", copy=False)
            cohort: exp.Expr = exp.column("cohort", table="m")
        else:
            match = exp.NullSafeEQ(this=self._own(), expression=exp.column("preference", table="levels"))
            source = source.join(exp.table_("levels"), on=match, join_type="left", copy=False)
            cohort = exp.column("cohort", table="levels")
        if self.apart and cohorts.changes is not None:
            mine, self.tables["changes"] = among_texts(person, self.facts.person, cohorts.changes)
            changed = mine.eq(exp.column("person", table="changes"))
            source = source.join(exp.table_("changes"), on=changed, join_type="left", copy=False)
            cohort = exp.Coalesce(this=exp.column("cohort", table="changes"), expressions=[cohort])
        if self.sampled:
            who = person_text(person, self.facts.person)
            source, self.tables["thresholds"] = with_coins(source, who, cohort, self.columns, self.key)
        source = source.select(exp.alias_(cohort, "c"), copy=False)
        if self.early:  # those without are left out when they have been counted
            return source
        return source.where(exp.GTE(this=cohort.copy(), expression=number(0)), copy=False)

    def _own(self) -> exp.Expr:
        """Return the preference next to a row, or to a person's rows put together, raw."""
        return self._stated() if self.rows.query.gathered is None else exp.column(OWN, table=ROW)

    def _stated(self) -> exp.Expr:
        """Return the preference next to a row of the source, raw."""
        if self.facts.beside is not None and self.numbered:
            return exp.column(self.facts.beside.number, table=ROW, quoted=True)
        return preference(exp.column(self.rows.query.table.epsilon, table=ROW, quoted=True), self.facts.epsilon)

    def _members(self) -> exp.Select:
        """The register as person and cohort, nobody twice."""
        cohorts = self.rows.cohorts
        person = exp.column(cohorts.person, table="register", quoted=True)
        own = preference(exp.column(cohorts.epsilon, table="register", quoted=True), self.facts.epsilon)
        match = exp.NullSafeEQ(this=own, expression=exp.column("preference", table="levels"))
        members = exp.select(exp.alias_(person, "person")).from_(exp.table_("register"), copy=False)
        members = members.join(exp.table_("levels"), on=match, copy=False).where(not_null(person), copy=False)
        if self.facts.unique:
            return members.select(exp.column("cohort", table="levels"), copy=False)
        lowest = exp.Min(this=exp.column("cohort", table="levels"))  # the strictest, should there ever be two
        return members.select(exp.alias_(lowest, "cohort"), copy=False).group_by(person, copy=False)

    def _on_grid(self, source: exp.Select) -> exp.Select:
        names = map(exp.column, ["p", "c", *(key.name for key in self.rows.query.keys)])
        values = [exp.alias_(stepped(column), column.name, copy=False) for column in self.columns if not column.bare]
        placed = exp.select(*names, *values, copy=False).from_(source.subquery("source", copy=False), copy=False)
        for categories in (column.categories for column in self.columns):
            if categories is not None:  # rows with other values stay: other aggregates may count them
                placed = self._key_join(placed, categories, "source", side="left")
        return placed

    def _placed_keys(self, kept: exp.Select, side: str = "") -> exp.Select:
        """Keys by their number among the values shown; rows with other values take nobody's place.

        With side "left", such rows are there and have no number.
        """
        if not self.rows.query.keys:
            return kept
        names = ["p", "c", *(column.name for column in self.columns if not column.bare)]
        placed = exp.select(*(exp.column(name, table="found") for name in names))
        placed = placed.from_(kept.subquery("found", copy=False), copy=False)
        for key in self.rows.query.keys:
            placed = self._key_join(placed, key, "found", side)
            placed = placed.select(exp.alias_(_place(key, False), key.name), copy=False)
        return placed

    def _key_join(self, source: exp.Select, key: Key, relation: str, side: str = "") -> exp.Select:
        name = f"keys_{key.name}"
        self.tables[name] = key_table(key)
        match = exp.column(key.name, table=relation), exp.column("value", table=name)
        on = exp.NullSafeEQ(this=match[0], expression=match[1])
        return source.join(exp.table_(name), on=on, join_type=side, copy=False)

    def _levels(self) -> None:
        levels: Mapping[Any, int] = self.rows.cohorts.levels
        kind = pa.float64() if is_number(self.facts.epsilon) else pa.string()
        if self.facts.beside is not None and self.numbered:
            levels, kind = self.facts.beside.cohorts, pa.int64()
        cohorts = column_of([*levels.values()], pa.int64())
        self.tables["levels"] = table_of(preference=column_of([*levels], kind), cohort=cohorts)


def _place(key: Key, placed: bool) -> exp.Expr:
    return exp.column(key.name, table="counted") if placed else place_of(key)
