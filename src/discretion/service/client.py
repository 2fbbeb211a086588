"""Client: the Connection behind `dn.connect("https://...", token=...)`. It holds no data; the service answers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import pyarrow as pa

from discretion.declaration.concern import told
from discretion.declaration.parameter import checked, given
from discretion.declaration.table import LONGEST_TEXT, Bounds, LookupSource, Policy, Table, TableList
from discretion.errors import InvalidDeclaration
from discretion.guarantee import Model
from discretion.ledger import Receipt, StatedPreference, Use
from discretion.ledger.access import LETTER_DAYS, TOKEN_DAYS
from discretion.ledger.audit import LedgerAudit
from discretion.ledger.listing import Balance, History
from discretion.ledger.member import Member, Token
from discretion.ledger.moving import EnteredBy
from discretion.ledger.replay import Finding
from discretion.mechanisms.belief import Assume
from discretion.mechanisms.option import Options
from discretion.noise import secret_bytes
from discretion.query.parameter import Params, bound
from discretion.release import Release
from discretion.render.listing import Listing
from discretion.service.channel import HttpChannel
from discretion.service.shown import ShownPlan, release_from


class RemoteConnection:
    """Protected tables of a service: the same methods as `Connection`, as far as the token's role allows."""

    def __init__(self, url: str, *, token: str, analyst: str = "") -> None:
        if analyst:
            raise InvalidDeclaration("A service knows the analyst by the token. Leave `analyst` out.")
        self._channel = HttpChannel(url, token)
        self._warnings: list[dict[str, Any]] = []
        self.access = RemoteAccess(self._channel)

    def close(self) -> None:
        """Let go of the network; what was charged is on the service's disk."""
        self._channel.close()

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
        """Enrol people from a file below the service's data folder; see `Connection.register`."""
        reading = given(
            delimiter=delimiter, encoding=encoding, decimal=decimal, null=null, sheet=sheet, types=types, zones=zones
        )
        chosen = given(levels=levels, menu=menu or None, default=default, separate=separate or None)
        self._steward("register", name, source, {"person": person, "epsilon": epsilon, **chosen, **reading})
        return self.balance(name)

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
        """Let analysts ask about a file below the service's data folder; see `Connection.protect`."""
        reading = given(
            delimiter=delimiter, encoding=encoding, decimal=decimal, null=null, sheet=sheet, types=types, zones=zones
        )
        chosen = given(levels=levels, menu=menu or None, default=default, separate=separate or None)
        declared = given(bounds=bounds, grid=grid, keys=keys, lookups=lookups, policy=policy, required=required or None)
        declared |= {"rows_per_person": rows_per_person, "longest_text": longest_text}
        who = given(person=person or None, epsilon=epsilon or None, register=register or None)
        done = self._steward("protect", name, source, {**who, **chosen, **declared, **reading})
        return Table.from_stored(json.dumps(done["table"]))

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
        """Admit the state that a source is in now; return the entry, "" if nobody changed."""
        reading = given(
            delimiter=delimiter, encoding=encoding, decimal=decimal, null=null, sheet=sheet, types=types, zones=zones
        )
        return str(self._steward("refresh", name, source, reading)["entry"])

    def _steward(self, what: str, name: str, source: object, said: Mapping[str, Any]) -> dict[str, Any]:
        if source is not None and not isinstance(source, str | Path):
            raise InvalidDeclaration("A service reads files below its own data folder; it cannot take an object.")
        place = {} if source is None else {"source": str(source)}
        done: dict[str, Any] = self._channel.ask("POST", f"/v1/{what}", {"name": name, **place, **_plain(said)})
        self._warnings = done["warnings"]
        return done

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
        """Return the columns of a source below the service's data folder, with their types."""
        reading = given(
            delimiter=delimiter, encoding=encoding, decimal=decimal, null=null, sheet=sheet, types=types, zones=zones
        )
        found: Mapping[str, str] = self._channel.ask("POST", "/v1/columns", {"source": str(source), **_plain(reading)})
        return found

    def changed(self) -> tuple[str, ...]:
        """Return the tables and registers whose sources were edited since."""
        return tuple(self._channel.ask("GET", "/v1/changed"))

    def warnings(self) -> Listing:
        """Return what seemed wrong with the rows that this connection admitted last."""
        empty = told(())
        return Listing(pa.Table.from_pylist(self._warnings, schema=empty.schema) if self._warnings else empty)

    def notices(self) -> Listing:
        """Return the entries whose answers were computed wrongly by an earlier version."""
        return Listing(self._channel.table("GET", "/v1/notices"))

    def prefer(self, person: object, epsilon: float | str, *, register: str = "", by: EnteredBy = "steward") -> str:
        """Record that somebody chose anew; return the ledger's entry."""
        if by != "steward":
            raise InvalidDeclaration("A service knows by the token who enters a choice. Leave `by` out.")
        return self._entry("prefer", person=_person(person), epsilon=epsilon, register=register)

    def join(self, person: object, epsilon: float | str, *, register: str = "") -> str:
        """Add somebody who is not in the source of a register; return the ledger's entry."""
        return self._entry("join", person=_person(person), epsilon=epsilon, register=register)

    def resume(self, register: str = "") -> str:
        """Allow questions about a register again; return the ledger's entry."""
        return self._entry("resume", register=register)

    def stops(self) -> Listing:
        """Return every failure that stopped a register."""
        return Listing(self._channel.table("GET", "/v1/stops"))

    def audit(self, *, head: str = "", witnesses: Sequence[str] = ()) -> LedgerAudit:
        """Add every balance up again from the entries and check their seals."""
        found = self._channel.ask("POST", "/v1/audit", {"head": head, "witnesses": list(witnesses)})
        del found["passed"]
        findings = tuple(Finding(**one) for one in found["findings"])
        return LedgerAudit(**{**found, "findings": findings, "notes": tuple(found["notes"])})

    def cautions(self) -> tuple[str, ...]:
        """Return what should be changed about the ledger's database."""
        return tuple(self._channel.ask("GET", "/v1/cautions"))

    def _entry(self, what: str, **said: Any) -> str:
        return str(self._channel.ask("POST", f"/v1/{what}", said)["entry"])

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
        """Answer a question about protected tables; see `Connection.sql`."""
        said = {"sql": bound(sql, params), "share": share, "mechanism": mechanism, "assume": assume, "expect": expect}
        said |= {
            "with_interval": with_interval,
            "partial": partial,
            **_given(options=options, within=within, model=model),
        }
        return release_from(self._channel.table("POST", "/v1/query", said, key=secret_bytes(16).hex()))

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
    ) -> ShownPlan:
        """Show what a question would cost whom, and how good the answer would be. Free."""
        said = {"sql": bound(sql, params), "share": share, "mechanism": mechanism, "assume": assume, "expect": expect}
        said |= {
            "with_interval": with_interval,
            "partial": partial,
            **_given(options=options, within=within, model=model),
        }
        return ShownPlan.from_facts(self._channel.ask("POST", "/v1/explain", said))

    def answer(self, entry: str) -> Release:
        """Return an answer that was delivered, by the entry that paid for it."""
        return release_from(self._channel.table("GET", f"/v1/answers/{entry}"))

    # Everybody ------------------------------------------------------------------------------------------------------

    def balance(self, register: str = "") -> Balance:
        """Return what each level has spent and has left, in one register or in all."""
        return Balance(self._channel.table("GET", "/v1/balance", query={"register": register}))

    def receipt(self, person: object, *, register: str = "") -> Receipt:
        """Return what one person was promised and what was spent; questions have no literals."""
        found = self._channel.ask("GET", "/v1/receipt", query={"person": str(_person(person)), "register": register})
        found["statements"] = tuple(StatedPreference(**one) for one in found["statements"])
        for uses in ("releases", "individual"):
            found[uses] = tuple(Use(**one) for one in found[uses])
        return Receipt(**found)

    def history(self) -> History:
        """Return every entry of the ledger; questions of other analysts have no literals."""
        return History(self._channel.table("GET", "/v1/history"))

    def tables(self) -> TableList:
        """Return every protected table as it was declared."""
        return TableList(Table.from_stored(json.dumps(one)) for one in self._channel.ask("GET", "/v1/tables"))

    def head(self) -> str:
        """Return the end of the ledger's chain."""
        return str(self._channel.ask("GET", "/v1/head")["head"])


class RemoteAccess:
    """Members of a service, for its stewards: the same methods as `Access`."""

    def __init__(self, channel: HttpChannel) -> None:
        self._channel = channel

    def add(self, name: str, role: str) -> str:
        """Give somebody a role; return the entry."""
        return str(self._channel.ask("POST", "/v1/members", {"name": name, "role": role})["entry"])

    def revoke(self, name: str) -> str:
        """Take a member's role back; return the entry."""
        return str(self._channel.ask("DELETE", f"/v1/members/{_quoted(name)}")["entry"])

    def members(self) -> tuple[Member, ...]:
        """Return every member."""
        return tuple(Member(**one, granted=0) for one in self._channel.ask("GET", "/v1/members"))

    def token(self, name: str, *, label: str = "", lasts: timedelta = timedelta(days=TOKEN_DAYS)) -> str:
        """Return a new token for a member's programs."""
        said = {"member": name, "label": label, "days": lasts / timedelta(days=1)}
        return str(self._channel.ask("POST", "/v1/tokens", said)["token"])

    def tokens(self) -> tuple[Token, ...]:
        """Return every token and link, without its secret; digests are shortened to ids."""
        found = self._channel.ask("GET", "/v1/tokens")
        return tuple(Token(digest=one.pop("id"), **one) for one in found)

    def withdraw(self, id: str) -> str:
        """Revoke one token, link or invitation; return the entry."""
        return str(self._channel.ask("DELETE", f"/v1/tokens/{_quoted(id)}")["entry"])

    def invite(
        self, register: str, people: Sequence[object] = (), *, lasts: timedelta = timedelta(days=LETTER_DAYS)
    ) -> tuple[str, list[tuple[str, str]]]:
        """Make one code for each of these people, or for everybody; return the entry and (person, code)."""
        said = {"register": register, "people": list(people), "days": lasts / timedelta(days=1)}
        found = self._channel.ask("POST", "/v1/invitations", said)
        return found["entry"], [(one["person"], one["code"]) for one in found["letters"]]

    def withdraw_all(self, entry: str) -> str:
        """Revoke every invitation that this entry made; return the entry of the revocation."""
        return str(self._channel.ask("DELETE", f"/v1/invitations/{_quoted(entry)}")["entry"])


def _given(**choices: Any) -> dict[str, Any]:
    """Return the choices that were made: a service of an older version does not know the others."""
    return {name: choice for name, choice in choices.items() if choice and choice != "personalized"}


def _plain(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return declarations as plain values; paths and dates become texts."""

    def plain(value: Any) -> Any:
        if is_dataclass(value) and not isinstance(value, type):
            return asdict(value)
        if isinstance(value, Mapping):
            return {str(name): plain(one) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return [plain(one) for one in value]
        return str(value) if isinstance(value, Path | date) else value

    return {name: plain(value) for name, value in said.items()}


def _person(person: object) -> str | int:
    return person if isinstance(person, int) and not isinstance(person, bool) else str(person)


def _quoted(name: str) -> str:
    return quote(name, safe="")
