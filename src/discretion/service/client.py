"""Client: the Connection behind `dn.connect("https://...", token=...)`. It holds no data; the service answers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from discretion.connection.front import Front, Said
from discretion.declaration.concern import told
from discretion.declaration.table import Table, TableList
from discretion.errors import InvalidDeclaration
from discretion.ledger import Receipt, StatedPreference, Use
from discretion.ledger.access import LETTER_DAYS, TOKEN_DAYS
from discretion.ledger.audit import LedgerAudit
from discretion.ledger.listing import Balance, History
from discretion.ledger.member import Member, Token
from discretion.ledger.moving import EnteredBy
from discretion.ledger.replay import Finding
from discretion.noise import secret_bytes
from discretion.release import Release
from discretion.render.listing import Listing
from discretion.service.channel import HttpChannel
from discretion.service.shown import ShownPlan, release_from


class RemoteConnection(Front[ShownPlan]):
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

    # Stewards -------------------------------------------------------------------------------------------------------

    def _register(self, name: str, source: object, who: Said, chosen: Said, reading: Said) -> Balance:
        self._steward("register", name, source, {**_chosen({**who, **chosen}), **reading})
        return self.balance(name)

    def _protect(
        self, name: str, source: object, who: Said, chosen: Said, reading: Said, declared: dict[str, Any]
    ) -> Table:
        done = self._steward("protect", name, source, {**_chosen({**who, **chosen, **declared}), **reading})
        return Table.from_stored(json.dumps(done["table"]))

    def _refresh(self, name: str, source: object, reading: Said) -> str:
        return str(self._steward("refresh", name, source, reading)["entry"])

    def _columns(self, source: object, reading: Said) -> Mapping[str, str]:
        found: Mapping[str, str] = self._channel.ask("POST", "/v1/columns", {"source": str(source), **_plain(reading)})
        return found

    def _steward(self, what: str, name: str, source: object, said: Mapping[str, Any]) -> dict[str, Any]:
        if source is not None and not isinstance(source, str | Path):
            raise InvalidDeclaration("A service reads files below its own data folder; it cannot take an object.")
        place = {} if source is None else {"source": str(source)}
        done: dict[str, Any] = self._channel.ask("POST", f"/v1/{what}", {"name": name, **place, **_plain(said)})
        self._warnings = done["warnings"]
        return done

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

    def _sql(self, said: Said) -> Release:
        return release_from(self._channel.table("POST", "/v1/query", _known(said), key=secret_bytes(16).hex()))

    def _explain(self, said: Said) -> ShownPlan:
        return ShownPlan.from_facts(self._channel.ask("POST", "/v1/explain", _known(said)))

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


def _known(said: Said) -> dict[str, Any]:
    """Return a question without new options that nobody chose: a service of an older version does not know them."""
    new = ("options", "within", "model")
    return {name: one for name, one in said.items() if name not in new or (one and one != "personalized")}


def _chosen(said: Said) -> dict[str, Any]:
    """Return what somebody chose: numbers, and what is not empty."""
    return {name: one for name, one in said.items() if one or (isinstance(one, int | float) and one is not False)}


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
