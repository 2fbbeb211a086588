"""Server: starts a service. Without TLS it listens on this machine only, unless a reverse proxy stands before it."""

import ipaddress
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from socket import socket

import uvicorn

from discretion.errors import InvalidDeclaration
from discretion.ledger import Access
from discretion.service.app import build
from discretion.service.house import House, Settings
from discretion.service.log import configure
from discretion.service.routes.member import sign_in_link

STEWARD = "steward"  # the first member, if there is no steward yet


def serve(
    settings: Settings,
    *,
    host: str,
    port: int,
    tls: tuple[Path, Path] | None,
    behind_proxy: bool,
    tell: Callable[[str], None],
    greet: Callable[[House], Sequence[str]] | None = None,
    level: str = "INFO",
) -> None:
    """Run a service until it is told to stop.

    Once it listens, tell the steward's sign-in link, or what `greet` says instead.

    level  of messages that the log has
    """
    settings = placed(settings, host=host, port=port, tls=tls is not None, behind_proxy=behind_proxy)
    configure(level)
    house = House(settings)
    lines = (greet or _greeting)(house)
    made = server(house, host=host, port=port, tls=tls, behind_proxy=behind_proxy)
    started = made.startup

    async def startup(sockets: list[socket] | None = None) -> None:
        await started(sockets)
        for line in lines if made.started else ():  # otherwise it ends at once, and the log says why
            tell(line)

    made.startup = startup  # type: ignore[method-assign]
    made.run()


def _greeting(house: House) -> list[str]:
    link = sign_in_link(house.settings.url, steward_code(house.access))
    return [
        f"Serving {house.settings.ledger} at {house.settings.url}",
        f"Sign in as steward, once, within an hour: {link}",
    ]


def ready_links(house: House, register: str, person: object) -> dict[str, str]:
    """Return a link for each role, to try the service out: a steward, an analyst and one person of a register."""
    known = {one.name for one in house.access.members()}
    for name in {"steward", "analyst"} - known:
        house.access.add(name, name)
    codes = {name: house.access.link(name) for name in ("steward", "analyst")}
    codes["person"] = house.access.invite(register, [person])[1][0][1]
    return {role: sign_in_link(house.settings.url, code) for role, code in codes.items()}


def server(
    house: House, *, host: str, port: int, tls: tuple[Path, Path] | None = None, behind_proxy: bool = False
) -> uvicorn.Server:
    """Return the server of a house, which has not started yet."""
    logging.getLogger("uvicorn.access").disabled = True  # it would write down the codes in links
    certificate, key = tls if tls is not None else (None, None)
    return uvicorn.Server(
        uvicorn.Config(
            build(house),
            host=host,
            port=port,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            http="h11",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=behind_proxy,
            forwarded_allow_ips="127.0.0.1",
            limit_concurrency=1_024,
            h11_max_incomplete_event_size=32_768,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=40,
        )
    )


def placed(settings: Settings, *, host: str, port: int, tls: bool, behind_proxy: bool) -> Settings:
    """Return settings with the address people use; refuse to be reached by others without encryption."""
    if not (tls or behind_proxy or is_loopback(host)):
        raise InvalidDeclaration(
            f"Without TLS, {host!r} would let others read questions and tokens on their way. Give --tls CERT KEY, or "
            "--behind-proxy if a proxy on this machine does it, or listen on 127.0.0.1."
        )
    if not settings.url and (behind_proxy or not is_loopback(host)):
        raise InvalidDeclaration("Give --url https://...: links need the name under which people reach the service.")
    own = f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
    url = (settings.url or own).rstrip("/").lower()
    if not is_loopback(host) and not url.startswith("https://"):
        raise InvalidDeclaration(f"People must reach the service by https://, got --url {settings.url!r}.")
    return replace(settings, url=url, secure=url.startswith("https://"))


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def steward_code(access: Access) -> str:
    """Return a new code that signs a steward in once; make the first steward if there is none."""
    stewards = [one.name for one in access.members() if one.role == "steward" and not one.revoked]
    if not stewards:
        access.add(STEWARD, "steward")
    return access.link(stewards[0] if stewards else STEWARD)
