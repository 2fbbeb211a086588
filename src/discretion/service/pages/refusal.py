"""Refusal: what a browser is shown when a page is refused: what happened, and what to do now."""

from typing import NamedTuple

from starlette.responses import Response

from discretion.errors import DiscretionError
from discretion.service.identity import Who
from discretion.service.pages import page
from discretion.service.problem import CODE, STALE, STATUS, Refused


class Told(NamedTuple):
    """Say how a refusal is shown: a title, what to do, and where to go."""

    title: str
    advice: str
    link: tuple[str, str] = ("/", "Go to the start")


SIGN_IN = ("/sign-in", "Sign in")
SIGNED_OUT = Told("Sign in first", "Use the link or the code that you were given.", SIGN_IN)
EXPIRED = Told(
    "You are signed out",
    "Your session has ended, or it was ended by the data owner. Nothing was sent or changed. Sign in again with a new "
    "link or code; ask the data owner if you do not have one.",
    SIGN_IN,
)
OLD = Told(
    "This page is too old",
    "Nothing was sent or changed. You may have signed in again, or as somebody else, since you opened it. "
    "Go to the start and repeat what you did.",
)
BY_STATUS = {
    400: Told("This request cannot be read", "Go back, load the page again, and repeat what you did."),
    403: Told("This page is not for you", "Your role does not include it. Ask the data owner if it should."),
    404: Told("There is no such page", "The address may be incomplete, or what it showed does not exist."),
    405: Told("There is no such page", "The address may be incomplete."),
    408: Told("That took too long", "The connection was too slow. Nothing was done. Try again."),
    413: Told("That is too large", "Nothing was done. Send less text."),
    415: Told("This request cannot be read", "Go back, load the page again, and repeat what you did."),
    421: Told("This service has another name", "Use the address that you were given."),
    429: Told("Too many requests", "Wait a moment, then load the page again."),
    500: Told("Something went wrong here", "It is not your fault. The operator of the service can look into its log."),
    503: Told("The service is busy", "Nothing was lost. Wait a moment, then load the page again."),
}
BY_CODE = {
    "TableStopped": Told(
        "Questions about this table are stopped",
        "An earlier question failed. Nobody can ask about it until the data owner has found out why and allows "
        "questions again. Nothing was charged.",
    ),
    "BudgetExhausted": Told(
        "Not everybody can pay for this question",
        "Nothing was charged. Ask with a smaller share, or see what is left.",
        ("/balance", "See what is left"),
    ),
    "SourceChanged": Told(
        "The data changed",
        "The data owner has to admit the new state first. Ask them to refresh the table.",
    ),
    "EngineFailed": Told("The data could not be read", "The data owner can look into it."),
    "LedgerCorrupt": Told(
        "The ledger is damaged", "Nothing can be asked until the data owner has run the audit. Tell them."
    ),
}
OTHER = Told("This cannot be done", "Go back, change what is wrong, and try again.")


def refusal_page(refusal: DiscretionError | Refused, who: Who, *, had_session: bool = False) -> Response:
    """Return the page for a refusal; `had_session`: the browser brought a session that is over."""
    if isinstance(refusal, Refused):
        status, code, headers = refusal.status, CODE[refusal.status], refusal.headers
    else:
        code = type(refusal).__name__
        status, headers = STATUS.get(code, 422), {}
    if status == 401:
        told = EXPIRED if had_session else SIGNED_OUT
    elif str(refusal) == STALE:
        told = OLD
    else:
        told = BY_CODE.get(code) or BY_STATUS.get(status, OTHER)
    detail = "" if status in (401, 405) or told is OLD or str(refusal).startswith("There is no ") else str(refusal)
    return page("refusal.html", who=who, status=status, headers=headers, told=told, detail=detail)
