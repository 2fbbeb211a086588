"""Navigation: the links at the top of every page, by role. The first one is where somebody lands after signing in."""

from collections.abc import Mapping

from discretion.service.permission import Role

Links = tuple[tuple[str, str], ...]  # (path, what it is called)

_ASKING: Links = (("/ask", "Ask"), ("/tables", "Tables"), ("/history", "History"), ("/balance", "What is left"))
NAVIGATION: Mapping[Role, Links] = {
    "person": (("/me", "My choice"), ("/me/answers", "Answers"), ("/me/print", "Copy to keep")),
    "analyst": (*_ASKING,),
    "steward": (
        ("/steward", "Overview"),
        ("/steward/tables", "Data"),
        ("/steward/people", "People"),
        ("/steward/members", "Members"),
        ("/steward/use", "Use"),
        ("/steward/audit", "Audit"),
        ("/ask", "Ask"),
    ),
    "nobody": (),
}


def home_of(role: Role) -> str:
    """Return where somebody of this role lands, "" if there is nothing yet."""
    return next((path for path, _ in NAVIGATION[role]), "")


def part_of(role: Role, here: str) -> str:
    """Return the link of the part that a page belongs to: the longest path that its own begins with."""
    fits = [path for path, _ in NAVIGATION[role] if here == path or here.startswith(f"{path}/")]
    return max(fits, key=len, default="")
