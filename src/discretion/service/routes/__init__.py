"""Routes: what the service does, by whom it is for."""

from discretion.service.endpoint import Endpoint
from discretion.service.pages import person
from discretion.service.routes import entrance, member, operation, people, question, steward

ENDPOINTS: tuple[Endpoint, ...] = (
    *operation.ENDPOINTS,
    *entrance.ENDPOINTS,
    *question.ENDPOINTS,
    *people.ENDPOINTS,
    *person.ENDPOINTS,
    *steward.ENDPOINTS,
    *member.ENDPOINTS,
)
