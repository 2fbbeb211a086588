"""Permission: who may do what, all of it in one table. A route that is not in the table does not exist."""

from typing import Literal, get_args

Role = Literal["steward", "analyst", "person", "nobody"]
ROLES: tuple[Role, ...] = get_args(Role)

_ALL = frozenset(ROLES)
_SIGNED_IN = _ALL - {"nobody"}
_MEMBERS = frozenset({"steward", "analyst"})
_PERSONAL = frozenset({"steward", "person"})  # a person only about themselves, which the route sees to
_STEWARD = frozenset({"steward"})
_PERSON = frozenset({"person"})  # the one signed in, about themselves

PERMISSIONS: dict[str, frozenset[str]] = {
    # What everybody may see
    "GET /": _ALL,
    "GET /promise": _ALL,
    "GET /health": _ALL,
    "GET /metrics": _ALL,
    "GET /v1/openapi.json": _ALL,
    "GET /sign-in": _ALL,
    "POST /sign-in": _ALL,
    "POST /sign-out": _ALL,
    "GET /oidc": _ALL,
    "GET /oidc/callback": _ALL,
    "GET /v1/me": _SIGNED_IN,
    # Questions
    "GET /v1/tables": _MEMBERS,
    "POST /v1/explain": _MEMBERS,
    "POST /v1/query": _MEMBERS,
    "GET /v1/answers/{entry}": _MEMBERS,
    "GET /v1/balance": _MEMBERS,
    "GET /v1/history": _MEMBERS,
    "GET /v1/head": _MEMBERS,
    "GET /ask": _MEMBERS,
    "POST /ask": _MEMBERS,
    "POST /ask/explain": _MEMBERS,
    "GET /answers/{entry}": _MEMBERS,
    "GET /answers/{entry}/download": _MEMBERS,
    "GET /tables": _MEMBERS,
    "GET /history": _MEMBERS,
    "GET /balance": _MEMBERS,
    # People
    "GET /v1/receipt": _PERSONAL,
    "GET /v1/levels": _PERSONAL,
    "POST /v1/prefer": _PERSONAL,
    "GET /me": _PERSON,
    "GET /me/choose": _PERSON,
    "POST /me/choose": _PERSON,
    "GET /me/chosen": _PERSON,
    "GET /me/answers": _PERSON,
    "GET /me/print": _PERSON,
    # Stewards
    "GET /steward": _STEWARD,
    "GET /steward/use": _STEWARD,
    "GET /steward/audit": _STEWARD,
    "POST /steward/audit": _STEWARD,
    "GET /steward/tables": _STEWARD,
    "GET /steward/table": _STEWARD,
    "POST /steward/refresh": _STEWARD,
    "POST /steward/stop": _STEWARD,
    "POST /steward/resume": _STEWARD,
    "GET /steward/policy": _STEWARD,
    "POST /steward/policy": _STEWARD,
    "GET /steward/protect": _STEWARD,
    "POST /steward/protect": _STEWARD,
    "GET /steward/members": _STEWARD,
    "POST /steward/members": _STEWARD,
    "POST /steward/members/revoke": _STEWARD,
    "POST /steward/tokens": _STEWARD,
    "POST /steward/tokens/revoke": _STEWARD,
    "GET /steward/people": _STEWARD,
    "POST /steward/invite": _STEWARD,
    "GET /steward/choice": _STEWARD,
    "POST /steward/choice": _STEWARD,
    "POST /v1/join": _STEWARD,
    "POST /v1/register": _STEWARD,
    "POST /v1/protect": _STEWARD,
    "POST /v1/columns": _STEWARD,
    "GET /v1/changed": _STEWARD,
    "GET /v1/timeline": _STEWARD,
    "POST /v1/refresh": _STEWARD,
    "POST /v1/resume": _STEWARD,
    "GET /v1/stops": _STEWARD,
    "GET /v1/notices": _STEWARD,
    "GET /v1/cautions": _STEWARD,
    "POST /v1/audit": _STEWARD,
    "GET /v1/members": _STEWARD,
    "POST /v1/members": _STEWARD,
    "DELETE /v1/members/{name}": _STEWARD,
    "GET /v1/tokens": _STEWARD,
    "POST /v1/tokens": _STEWARD,
    "DELETE /v1/tokens/{id}": _STEWARD,
    "POST /v1/invitations": _STEWARD,
    "DELETE /v1/invitations/{entry}": _STEWARD,
}


def is_allowed(role: str, route: str) -> bool:
    """Tell whether a role may use a route, written as "GET /v1/tables"."""
    return role in PERMISSIONS.get(route, frozenset())
