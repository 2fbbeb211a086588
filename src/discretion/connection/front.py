"""Front: what stewards declare and analysts ask. Behind it is a ledger of one's own, or a service that is asked."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Self, TypeVar

from discretion.declaration.parameter import checked, given
from discretion.declaration.table import LONGEST_TEXT, Bounds, LookupSource, Policy, Table
from discretion.guarantee import Model
from discretion.ledger.listing import Balance
from discretion.mechanisms.belief import Assume
from discretion.mechanisms.option import Options
from discretion.query.parameter import Params, bound
from discretion.release import Release

Planned = TypeVar("Planned")
Said = Mapping[str, Any]  # options by name


class Front(ABC, Generic[Planned]):
    """Take calls in the same way wherever the tables are; subclasses say how they are carried out."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the ledger or the service; whatever was charged is on disk."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Stewards -------------------------------------------------------------------------------------------------------

    @checked
    def register(
        self,
        name: str,
        source: object,
        *,
        person: str,
        epsilon: str,
        levels: Mapping[str, float] | None = None,
        menu: Sequence[float] = (),
        default: float | str | None = None,
        separate: bool = False,
        delimiter: str | None = None,
        encoding: str | None = None,
        decimal: str | None = None,
        null: Sequence[str] | None = None,
        sheet: str | None = None,
        types: Mapping[str, str] | None = None,
        zones: Mapping[str, str] | None = None,
    ) -> Balance:
        """Enrol people with the preferences they chose: columns `person` and `epsilon` of a file, table or data frame.

        levels   names for preferences, e.g. {"strict": 0.1, "open": 1.0}
        menu     levels that every preference is rounded down to
        default  for people who stated none; otherwise they get the strictest level offered
        separate these identifiers name other people than the same identifiers in other registers

        How a file is read: delimiter, encoding, decimal, null, sheet, types, zones (see docs/sources.md).
        """
        reading = given(
            delimiter=delimiter, encoding=encoding, decimal=decimal, null=null, sheet=sheet, types=types, zones=zones
        )
        chosen = {"levels": levels, "menu": menu, "default": default}
        who = {"person": person, "epsilon": epsilon, "separate": separate}
        return self._register(name, source, who, chosen, reading)

    @checked
    def protect(
        self,
        name: str,
        source: object,
        *,
        person: str = "",
        epsilon: str = "",
        register: str = "",
        levels: Mapping[str, float] | None = None,
        menu: Sequence[float] = (),
        default: float | str | None = None,
        separate: bool = False,
        bounds: Mapping[str, Bounds] | None = None,
        grid: Mapping[str, float] | None = None,
        keys: Mapping[str, Sequence[object]] | None = None,
        rows_per_person: int = 1,
        longest_text: int = LONGEST_TEXT,
        required: Sequence[str] = (),
        lookups: Mapping[str, LookupSource] | None = None,
        policy: Policy | None = None,
        delimiter: str | None = None,
        encoding: str | None = None,
        decimal: str | None = None,
        null: Sequence[str] | None = None,
        sheet: str | None = None,
        types: Mapping[str, str] | None = None,
        zones: Mapping[str, str] | None = None,
    ) -> Table:
        """Let analysts ask about a table. What is declared here, and who chose what, becomes public.

        With `epsilon`, a column of the table itself, the table is its own register (see `register` for levels, menu,
        default and separate): who is in it is public, their values are protected. With `register`, preferences come
        from people enrolled before, and being in the table at all is protected.

        bounds           {column: (low, high)}: values are clamped to it; needed for sums, averages, quantiles. Two
                         dates: their months, years and so on are public keys; other dates are in no group
        grid             {column: step} between candidate answers
        keys             {column: [values]}: every value GROUP BY shows
        rows_per_person  the most rows of one person that count; more are left out at random
        longest_text     the most characters of a text that count (1,000); the person's own text is never cut
        required         columns declared never NULL
        lookups          {name: (source, key)}: unprotected tables that may be joined on their unique key. With
                         (source, key, "public") you confirm that it was not made from people's rows: GROUP BY may
                         then show its values, which are read now
        policy           what the steward allows: see Policy

        How a file is read: delimiter, encoding, decimal, null, sheet, types, zones (see docs/sources.md). What seems
        wrong with the rows is told by `warnings`, to the steward only.
        """
        who = {"person": person, "epsilon": epsilon, "register": register, "separate": separate}
        reading = given(
            delimiter=delimiter, encoding=encoding, decimal=decimal, null=null, sheet=sheet, types=types, zones=zones
        )
        declared = given(bounds=bounds, grid=grid, keys=keys, lookups=lookups, policy=policy)
        declared |= {"rows_per_person": rows_per_person, "longest_text": longest_text, "required": required}
        chosen = {"levels": levels, "menu": menu, "default": default}
        return self._protect(name, source, who, chosen, reading, declared)

    @checked
    def refresh(
        self,
        name: str,
        source: object = None,
        *,
        delimiter: str | None = None,
        encoding: str | None = None,
        decimal: str | None = None,
        null: Sequence[str] | None = None,
        sheet: str | None = None,
        types: Mapping[str, str] | None = None,
        zones: Mapping[str, str] | None = None,
    ) -> str:
        """Admit the state that the source of a table or register is in now, or that it has at the new place `source`.

        Every difference of preferences becomes an individual change; nobody gets back what is spent. Returns the
        ledger's entry about people, "" if nobody changed. Options say how a file is read, if that changed.
        """
        reading = given(
            delimiter=delimiter, encoding=encoding, decimal=decimal, null=null, sheet=sheet, types=types, zones=zones
        )
        return self._refresh(name, source, reading)

    def columns(
        self,
        source: object,
        *,
        delimiter: str | None = None,
        encoding: str | None = None,
        decimal: str | None = None,
        null: Sequence[str] | None = None,
        sheet: str | None = None,
        types: Mapping[str, str] | None = None,
        zones: Mapping[str, str] | None = None,
    ) -> Mapping[str, str]:
        """Return the columns of a source with their types, as `protect` would read it; nothing is kept or public."""
        reading = given(
            delimiter=delimiter, encoding=encoding, decimal=decimal, null=null, sheet=sheet, types=types, zones=zones
        )
        return self._columns(source, reading)

    # Analysts -------------------------------------------------------------------------------------------------------

    @checked
    def sql(
        self,
        sql: str,
        *,
        share: float = 0.1,
        mechanism: str = "auto",
        options: Options | None = None,
        assume: Assume = None,
        expect: tuple[float, float] | None = None,
        with_interval: bool = False,
        partial: bool = False,
        params: Params | None = None,
        within: float | None = None,
        model: Model = "personalized",
    ) -> Release:
        """Answer a question about protected tables; charged before a row is read.

        share          the most of each person's own allowance that this may use
        mechanism      "auto" (the smallest predicted error) or a name
        options        of that mechanism: {"threshold": "mean"} (docs/mechanisms.md)
        assume         None: nothing about the data; "gradual": people of similar ε are alike, and how values depend on
                       ε is estimated; "independent": preferences are unrelated to values; or a number between
        expect         (low, high): every level's fraction or mean is believed to lie there
        with_interval  spend a third of a quantile's share on its interval in value units
        partial        let people who cannot pay their share pay what they have left, instead of refusing
        params         values for ? (a list) or $name (a mapping); each is written into the question as a literal
        within         the largest error (95%, as behind ±), if everybody has one row in the answer: the smallest share
                       that is enough is used, `share` at most; with WHERE or groups an error may be larger
        model          "individual" is NOT differential privacy: it needs a policy that allows it, has an account of its
                       own, and gives an IndividualRelease (docs/mechanisms.md)
        """
        said = {
            "sql": bound(sql, params),
            "share": share,
            "mechanism": mechanism,
            "options": options,
            "assume": assume,
            "expect": expect,
            "with_interval": with_interval,
            "partial": partial,
            "within": within,
            "model": model,
        }
        return self._sql(said)

    @checked
    def explain(
        self,
        sql: str,
        *,
        share: float = 0.1,
        mechanism: str = "auto",
        options: Options | None = None,
        assume: Assume = None,
        expect: tuple[float, float] | None = None,
        with_interval: bool = False,
        partial: bool = False,
        params: Params | None = None,
        within: float | None = None,
        model: Model = "personalized",
    ) -> Planned:
        """Return what `sql` would cost whom, and how good the answer would be. Free; it sees no data. See `sql`."""
        said = {
            "sql": bound(sql, params),
            "share": share,
            "mechanism": mechanism,
            "options": options,
            "assume": assume,
            "expect": expect,
            "with_interval": with_interval,
            "partial": partial,
            "within": within,
            "model": model,
        }
        return self._explain(said)

    # How it is done -------------------------------------------------------------------------------------------------

    @abstractmethod
    def _register(self, name: str, source: object, who: Said, chosen: Said, reading: Said) -> Balance: ...

    @abstractmethod
    def _protect(
        self, name: str, source: object, who: Said, chosen: Said, reading: Said, declared: dict[str, Any]
    ) -> Table: ...

    @abstractmethod
    def _refresh(self, name: str, source: object, reading: Said) -> str: ...

    @abstractmethod
    def _columns(self, source: object, reading: Said) -> Mapping[str, str]: ...

    @abstractmethod
    def _sql(self, said: Said) -> Release: ...

    @abstractmethod
    def _explain(self, said: Said) -> Planned: ...
