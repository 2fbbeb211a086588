"""Routes: what the service does, by whom it is for."""

from discretion.service.endpoint import Endpoint
from discretion.service.pages import answer, ask, overview, person
from discretion.service.routes import entrance, member, operation, people, question, steward

ENDPOINTS: tuple[Endpoint, ...] = (
    *operation.ENDPOINTS,
    *entrance.ENDPOINTS,
    *question.ENDPOINTS,
    *people.ENDPOINTS,
    *ask.ENDPOINTS,
    *answer.ENDPOINTS,
    *overview.ENDPOINTS,
    *person.ENDPOINTS,
    *steward.ENDPOINTS,
    *member.ENDPOINTS,
)
