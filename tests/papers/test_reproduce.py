"""`discretion reproduce`: files, determinism, real data, the page."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from discretion.cli import app
from discretion.errors import InvalidDeclaration
from discretion.noise import simulation
from discretion.papers import FIGURES, compute, plan
from discretion.papers.command import count, fill
from discretion.papers.data import census, census_file, items_file, recognise
from discretion.papers.figure import Effort, reproduce
from discretion.papers.networks import people

ROOT = Path(__file__).parent.parent.parent
SHARED = ROOT.parent / "shared" / "data"
QUICKLY = ["pdp-example1", "idp-table1", "hdp-utility"]


def command(*words):
    return CliRunner().invoke(app, ["reproduce", *map(str, words)])


def test_every_figure_yields_data_plot_and_verdict(tmp_path):
    done = command(*QUICKLY, "--quick", "--out", tmp_path, "--json")
    assert 0 == done.exit_code, done.output
    summaries = json.loads(done.stdout)
    assert QUICKLY == [summary["figure"] for summary in summaries]
    assert {"reproduced", "not reproduced", "holds", "does not hold"} == {
        row["verdict"] for summary in summaries for row in summary["claims"]
    }
    assert {f"{name}.{kind}" for name in QUICKLY for kind in ("csv", "md", "png", "svg")} == {
        path.name for path in tmp_path.iterdir() if path.is_file()
    }


def test_a_run_that_is_resumed_computes_only_what_is_not_there(tmp_path, monkeypatch):
    asked = ("--quick", "--out", tmp_path, "--json")
    first = command("pdp-example1", *asked)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.suffix in (".csv", ".md")}
    computed = []

    def counted(figure, *rest):
        computed.append(figure.id)
        return reproduce(figure, *rest)

    monkeypatch.setattr("discretion.papers.reproduce", counted)
    both = command("pdp-example1", "hdp-utility", *asked, "--resume")
    assert 0 == both.exit_code, both.output
    assert ["hdp-utility"] == computed
    assert json.loads(first.stdout) == json.loads(both.stdout)[:1]
    assert all(content == (tmp_path / name).read_bytes() for name, content in before.items())
    assert 0 == command("hdp-utility", *asked, "--resume", "--seed", 5).exit_code  # another seed is another run
    assert ["hdp-utility"] * 2 == computed
    (tmp_path / ".kept" / "hdp-utility.json").write_text("{")
    assert 0 == command("hdp-utility", *asked, "--resume", "--seed", 5).exit_code  # what is broken is not kept
    assert ["hdp-utility"] * 3 == computed


def test_the_same_seed_writes_the_same_files(tmp_path):
    for folder in ("first", "second"):
        assert 0 == command("pdp-1b", "--runs", 2, "--seed", 4, "--out", tmp_path / folder).exit_code
    for name in ("pdp-1b.csv", "pdp-1b.svg", "pdp-1b.md"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_the_list_names_every_figure():
    listed = command("--list", "--json")
    assert list(FIGURES) == [row["figure"] for row in json.loads(listed.stdout)]


def test_an_unknown_figure_or_file_is_refused(tmp_path):
    assert 2 == command("pdp-9").exit_code
    assert 2 == command("pdp-3a", "--data", tmp_path / "none.parquet").exit_code
    parquet.write_table(pa.table({"colour": ["red"]}), tmp_path / "other.parquet")
    refused = command("pdp-3a", "--data", tmp_path / "other.parquet")
    assert 2 == refused.exit_code
    assert "must be a census extract" in refused.output


def test_two_processes_compute_what_one_does():
    jobs = plan(["idp-examples", "partitioning-rounds", "pdp-example1"], runs=2)
    alone = {outcome.figure.id: outcome.points for outcome in compute(jobs)}
    together = {outcome.figure.id: outcome.points for outcome in compute(jobs, processes=2)}
    assert alone == together


def write_census(path):
    made = census(3_000, simulation(1))
    columns = dict(zip(made.names, made.values.T, strict=True))
    table = {
        "agep": columns["age"],
        "sex": columns["female"] + 1,
        "msp": 6 * columns["single"] + columns["married"],
        "noc": columns["children"],
        "npf": columns["family"],
        "edu": columns["education"],
        "own_rent": columns["owner"],
        "dphy": 2 - columns["disabled"],
        "drem": 2 - columns["disabled"],
        "pincp": columns["income"],
    }
    rows = pa.table({name: values.astype(int) for name, values in table.items()})
    parquet.write_table(rows.append_column("indp", pa.array(["1"] * 2_000 + [None] * 1_000)), path)


def test_real_data_replaces_the_generated_where_it_fits(tmp_path):
    path = tmp_path / "extract.parquet"
    write_census(path)
    jobs = {figure.id: effort.data for figure, effort in plan(["pdp-3a", "pdp-1a", "hdp-fig1"], data=path)}
    assert {"pdp-3a": path, "pdp-1a": None, "hdp-fig1": None} == jobs
    outcome = reproduce(FIGURES["partitioning-fig2"], Effort(runs=5, data=path))
    assert "Data: real, extract.parquet." in outcome.text()
    assert "income" == census_file(path).names[-1]


def test_a_user_item_file_is_recognised_and_sampled(tmp_path):
    rng = simulation(2)
    person = rng.integers(0, 700, 30_000)
    parquet.write_table(
        pa.table({"user_id": person, "item_id": rng.integers(0, 200, 30_000)}), tmp_path / "items.parquet"
    )
    assert "items" == recognise(tmp_path / "items.parquet")
    profiles = people("items", tmp_path / "items.parquet", 0)
    assert 500 == profiles.people
    assert 10 <= profiles.sizes.min()
    assert 30_000 == len(items_file(tmp_path / "items.parquet")[0])


@pytest.mark.parametrize(
    ("name", "kind"),
    [("acs_national_2019", "census"), ("adult", "census"), ("msweb_visits", "items")],
)
def test_the_shared_data_is_recognised_where_it_is_there(name, kind):
    path = SHARED / f"{name}.parquet"
    if path.is_file():
        assert kind == recognise(path)


def test_a_page_is_filled_in_its_places_and_nowhere_else(tmp_path):
    page, figures = tmp_path / "page.md", tmp_path / "figures"
    places = [("hdp-utility", "stale", "after"), ("pdp-1a", "kept", "")]
    text = "".join(f"<!-- figure {name} -->\n{old}\n<!-- end -->\n{end}\n" for name, old, end in places)
    page.write_text(f"<!-- summary -->\n<!-- end -->\n## A paper\nbefore\n{text}")
    reproduce(FIGURES["hdp-utility"], Effort(runs=0)).write(figures)
    fill(page, figures)
    text = page.read_text()
    assert "before\n<!-- figure hdp-utility -->\n### HDP Theorem 3" in text
    assert "| A paper | 1 | 4 |\n<!-- end -->\n## A paper" in text
    assert "![hdp-utility](figures/hdp-utility.svg)\n<!-- end -->\nafter\n" in text
    assert "kept" in text
    assert "stale" not in text
    assert (1, 4) == count(text)
    reproduce(FIGURES["idp-table1"], Effort(runs=0)).write(figures)
    with pytest.raises(InvalidDeclaration, match="idp-table1"):
        fill(page, figures)


def test_the_documentation_has_a_place_for_every_figure_and_its_exact_numbers_are_current():
    text = (ROOT / "docs" / "papers.md").read_text()
    for name, figure in FIGURES.items():
        place = text.split(f"<!-- figure {name} -->\n")[1].split("<!-- end -->")[0]
        assert f"### {figure.title}" in place, name
        assert sum(count(place)) >= 1, name
        if not figure.runs and figure.seconds < 2:
            assert reproduce(figure, Effort(runs=0)).text() in place, name


@pytest.mark.slow
def test_everything_completes_quickly_and_yields_all_files(tmp_path):
    done = command("--quick", "--out", tmp_path, "--json")
    assert 0 == done.exit_code, done.output
    assert {f"{name}.{kind}" for name in FIGURES for kind in ("csv", "md", "png", "svg")} == {
        path.name for path in tmp_path.iterdir() if path.is_file()
    }
    assert list(FIGURES) == [summary["figure"] for summary in json.loads(done.stdout)]
