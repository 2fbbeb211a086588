"""Metric: public numbers about the service, in the text form that Prometheus reads. None of them depends on a row."""

from collections import Counter
from collections.abc import Iterator, Mapping


class Metrics:
    """Counts requests by route and status."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()

    def text(self, gauges: Mapping[str, int], counts: Mapping[str, int]) -> str:
        """Return everything counted; `counts` are tasks of workers by kind and outcome."""
        return "\n".join([*self._lines(gauges, counts), ""])

    def _lines(self, gauges: Mapping[str, int], counts: Mapping[str, int]) -> Iterator[str]:
        yield "# TYPE discretion_requests_total counter"
        for (route, status), number in sorted(self.requests.items()):
            method, _, path = route.partition(" ")
            yield f'discretion_requests_total{{method="{method}",path="{path}",status="{status}"}} {number}'
        yield "# TYPE discretion_tasks_total counter"
        for name, number in sorted(counts.items()):
            yield f'discretion_tasks_total{{outcome="{name}"}} {number}'
        for name, number in gauges.items():
            yield f"# TYPE discretion_{name} gauge"
            yield f"discretion_{name} {number}"
