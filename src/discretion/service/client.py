"""Client: the Connection behind `dn.connect("https://...", token=...)`. It holds no data; the service answers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx
import pyarrow as pa

from discretion.declaration.concern import told
from discretion.declaration.table import Table
from discretion.errors import AccessDenied, InvalidDeclaration, ServiceFailed
from discretion.guarantee import Model
from discretion.ledger import Receipt, StatedPreference, Use
from discretion.ledger.access import LETTER_DAYS, TOKEN_DAYS
from discretion.ledger.audit import LedgerAudit
from discretion.ledger.member import Member, Token
from discretion.ledger.replay import Finding
from discretion.mechanisms.belief import Assume
from discretion.mechanisms.option import Options
from discretion.noise import secret_bytes
from discretion.query.parameter import Params, bound
from discretion.release import Release
from discretion.render.listing import Listing
from discretion.service.shown import ARROW, ShownPlan, listing_from, release_from, restored

PATIENCE = httpx.Timeout(30.0, read=900.0)  # seconds; a question may wait for its turn


class HttpChannel:
    """Requests to one service, in the name of one token."""

    def __init__(self, url: str, token: str) -> None:
        if not token:
            raise AccessDenied(f"The service {url!r} needs a token: connect(url, token=...), or DISCRETION_TOKEN.")
        if url.startswith("http://") and not _is_here(httpx.URL(url).host):
            raise InvalidDeclaration(f"{url!r} is not encrypted, so others could read the token. Use https://.")
        headers = {"Authorization": f"Bearer {token}", "User-Agent": "discretion"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=PATIENCE, follow_redirects=False)

    def close(self) -> None:
        """Let go of the network."""
        self._http.close()

    def ask(self, method: str, path: str, said: Any = None, **query: Any) -> Any:
        """Send a request and return the JSON of the answer; a refusal is raised as the local error."""
        return self._send(method, path, said, query, {}).json()

    def table(self, method: str, path: str, said: Any = None, *, key: str = "", **query: Any) -> pa.Table:
        """Send a request and return the Arrow table of the answer."""
        headers = {"Accept": ARROW} | ({"Idempotency-Key": key} if key else {})
        return listing_from(self._send(method, path, said, query, headers).content).to_arrow()

    def _send(self, method: str, path: str, said: Any, query: Any, headers: dict[str, str]) -> httpx.Response:
        content = None if said is None else json.dumps(said, allow_nan=True).encode()
        headers = headers | ({} if content is None else {"Content-Type": "application/json"})
        tries = 2 if method == "GET" or "Idempotency-Key" in headers else 1
        for left in reversed(range(tries)):
            try:
                response = self._http.request(method, path, content=content, params=query or None, headers=headers)
                return _accepted(response)
            except httpx.HTTPError as failure:
                if not left:
                    raise ServiceFailed(
                        f"The service {str(self._http.base_url)!r} cannot be reached ({type(failure).__name__})."
                    ) from None
        raise ServiceFailed("The service did not answer.")


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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Stewards -------------------------------------------------------------------------------------------------------

    def register(self, name: str, source: Any, *, person: str, epsilon: str, **choices: Any) -> Listing:
        """Enrol people from a file below the service's data folder; see `Connection.register`."""
        self._steward("register", name, source, person=person, epsilon=epsilon, **choices)
        return self.balance(name)

    def protect(self, name: str, source: Any, **declared: Any) -> Table:
        """Let analysts ask about a file below the service's data folder; see `Connection.protect`."""
        done = self._steward("protect", name, source, **declared)
        return Table.from_stored(json.dumps(done["table"]))

    def refresh(self, name: str, source: Any = None, **options: Any) -> str:
        """Admit the state that a source is in now; return the entry, "" if nobody changed."""
        return str(self._steward("refresh", name, source, **options)["entry"])

    def _steward(self, what: str, name: str, source: Any, **said: Any) -> dict[str, Any]:
        if source is not None and not isinstance(source, str | Path):
            raise InvalidDeclaration("A service reads files below its own data folder; it cannot take an object.")
        place = {} if source is None else {"source": str(source)}
        done: dict[str, Any] = self._channel.ask("POST", f"/v1/{what}", {"name": name, **place, **_plain(said)})
        self._warnings = done["warnings"]
        return done

    def columns(self, source: Any, **options: Any) -> Mapping[str, str]:
        """Return the columns of a source below the service's data folder, with their types."""
        found: Mapping[str, str] = self._channel.ask("POST", "/v1/columns", {"source": str(source), **_plain(options)})
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

    def prefer(self, person: Any, epsilon: float | str, *, register: str = "") -> str:
        """Record that somebody chose anew; return the ledger's entry."""
        return self._entry("prefer", person=_person(person), epsilon=epsilon, register=register)

    def join(self, person: Any, epsilon: float | str, *, register: str = "") -> str:
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
        """Answer a question about one protected table; see `Connection.sql`."""
        said = {"sql": bound(sql, params), "share": share, "mechanism": mechanism, "assume": assume, "expect": expect}
        said |= {
            "with_interval": with_interval,
            "partial": partial,
            **_given(options=options, within=within, model=model),
        }
        return release_from(self._channel.table("POST", "/v1/query", said, key=secret_bytes(16).hex()))

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

    def balance(self, register: str = "") -> Listing:
        """Return what each level has spent and has left, in one register or in all."""
        return Listing(self._channel.table("GET", "/v1/balance", register=register))

    def receipt(self, person: Any, *, register: str = "") -> Receipt:
        """Return what one person was promised and what was spent; questions have no literals."""
        found = self._channel.ask("GET", "/v1/receipt", person=str(_person(person)), register=register)
        found["statements"] = tuple(StatedPreference(**one) for one in found["statements"])
        for uses in ("releases", "individual"):
            found[uses] = tuple(Use(**one) for one in found[uses])
        return Receipt(**found)

    def history(self) -> Listing:
        """Return every entry of the ledger; questions of other analysts have no literals."""
        return Listing(self._channel.table("GET", "/v1/history"))

    def tables(self) -> tuple[Table, ...]:
        """Return every protected table as it was declared."""
        return tuple(Table.from_stored(json.dumps(one)) for one in self._channel.ask("GET", "/v1/tables"))

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


def _accepted(response: httpx.Response) -> httpx.Response:
    """Return a response that says yes; raise what it refuses as the error that a local connection would raise."""
    if response.is_success:
        return response
    try:
        facts = response.json()
        refusal = restored(facts["code"], str(facts["detail"]), facts)
    except (ValueError, KeyError, AttributeError, TypeError):
        refusal = ServiceFailed(f"The service answered with status {response.status_code}. Is this its address?")
    raise refusal


def _given(**choices: Any) -> dict[str, Any]:
    """Return the choices that were made: a service of an older version does not know the others."""
    return {name: choice for name, choice in choices.items() if choice and choice != "personalized"}


def _plain(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return declarations as plain values; paths become texts."""

    def plain(value: Any) -> Any:
        if is_dataclass(value) and not isinstance(value, type):
            return asdict(value)
        if isinstance(value, Mapping):
            return {str(name): plain(one) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return [plain(one) for one in value]
        return str(value) if isinstance(value, Path) else value

    return {name: plain(value) for name, value in said.items()}


def _person(person: Any) -> str | int:
    return person if isinstance(person, int) and not isinstance(person, bool) else str(person)


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
