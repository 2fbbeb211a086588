"""Routes: what the service does, by whom it is for."""

from discretion.service.endpoint import Endpoint
from discretion.service.pages import answer, ask, entering, holding, membership, oversight, overview, person, protecting
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
    *oversight.ENDPOINTS,
    *holding.ENDPOINTS,
    *protecting.ENDPOINTS,
    *membership.ENDPOINTS,
    *entering.ENDPOINTS,
    *steward.ENDPOINTS,
    *member.ENDPOINTS,
)
