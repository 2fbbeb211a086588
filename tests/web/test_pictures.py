"""The pictures of the documentation: made from a clinic with eight weeks of history, each below 80 kB.

With PICTURES=docs/pictures they are written there; else they are only tried.
"""

import os
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from discretion.cli.demo import _declare, invent_clinic, invent_survey
from discretion.connection import connect
from discretion.ledger.clock import Clock
from discretion.noise import simulation
from served import Served, served

LARGEST = 80_000
COMMITTED = Path(__file__).parents[2] / "docs" / "pictures"
QUESTIONS = (
    "SELECT COUNT(DISTINCT patient_id) FROM visits WHERE department = 'surgery'",
    "SELECT region, AVG(systolic) AS pressure FROM patients GROUP BY region",
    "SELECT COUNT(*) FROM patients WHERE smoker AND age > {}",
    "SELECT department, SUM(cost) AS cost FROM visits WHERE cost > {} GROUP BY department",
)
NAMES = ("choose.png", "ask.png", "answer.png", "steward.png", "protect.png", "use.png")


@pytest.fixture(scope="module")
def town(tmp_path_factory) -> Served:
    """A clinic that was asked and chosen in for eight weeks."""
    folder, rng = tmp_path_factory.mktemp("pictures"), simulation(7)
    invent_clinic(folder)
    invent_survey(folder)
    ledger = str(folder / "clinic.discretion")
    start = datetime.now(UTC) - timedelta(days=56)
    with pytest.MonkeyPatch.context() as patched:
        then = [start]
        patched.setattr(Clock, "now", lambda _: then[0].isoformat(timespec="seconds"))
        with connect(ledger) as db:
            _declare(db, folder)
        for number in range(24):
            then[0] = start + timedelta(days=56 * number / 24, hours=float(rng.uniform(0, 5)))
            with connect(ledger, analyst=("ada", "bob", "cleo")[number % 3]) as db:
                db.sql(QUESTIONS[number % 4].format(20 + number), share=0.015)
                for person in rng.integers(1, 20_000, 6):
                    db.prefer(int(person), float(rng.choice([0, 0.1, 0.5, 1.0])))
    with served(folder, ledger=ledger) as started:
        started.house.access.token("ada", label="notebook", lasts=timedelta(days=9))
        yield started


def taken(page, folder: Path, name: str) -> None:
    folder.mkdir(exist_ok=True, parents=True)
    drawn = Image.open(BytesIO(page.screenshot()))
    drawn.convert("RGB").quantize(96).save(folder / name, optimize=True)  # few colours: a small file
    assert (folder / name).stat().st_size < LARGEST, name


@pytest.mark.slow
def test_the_pictures_of_the_documentation_can_be_made(visit, town, tmp_path):
    folder = Path(os.environ.get("PICTURES", tmp_path))
    small = {"width": 960, "height": 640}
    page = visit(town=town).sign_in(town.house.access.invite("patients", [17])[1][0][1])
    page.set_viewport_size(small)
    page.goto(f"{town.url}/me/choose")
    page.locator("#level-3").check()
    page.evaluate("window.scrollTo(0, 300)")
    taken(page, folder, "choose.png")

    page = visit(town=town).sign_in(town.house.access.link("ada"))
    page.set_viewport_size({"width": 1040, "height": 600})
    page.goto(f"{town.url}/ask")
    page.get_by_role("textbox").first.fill(
        "SELECT department, COUNT(*) AS visits\nFROM visits WHERE cost > 50\nGROUP BY department"
    )
    page.locator("#outlook .headline").wait_for(timeout=60_000)
    taken(page, folder, "ask.png")
    page.get_by_role("button", name="Ask and spend").click()
    page.wait_for_url("**/answers/**", timeout=60_000)
    taken(page, folder, "answer.png")

    page = visit(town=town).sign_in(town.house.access.link("sam"))
    page.set_viewport_size({"width": 1040, "height": 600})
    taken(page, folder, "steward.png")
    page.goto(f"{town.url}/steward/use")
    taken(page, folder, "use.png")
    page.goto(f"{town.url}/steward/protect?source=survey.parquet")
    page.set_viewport_size(small)
    page.get_by_role("button", name="Protect the table").click()
    taken(page, folder, "protect.png")


@pytest.mark.slow
def test_the_pictures_that_are_kept_are_small_and_few():
    kept = sorted(path.name for path in COMMITTED.glob("*"))
    assert sorted(NAMES) == kept
    assert all((COMMITTED / name).stat().st_size < LARGEST for name in kept)
