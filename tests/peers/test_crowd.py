"""Peers as processes: the demonstration, crashes, and thirty peers against the simulation."""

import json
import signal
import sys
from functools import lru_cache
from subprocess import run as run_process

import numpy as np
import pytest
from typer.testing import CliRunner

from discretion.cli import app
from discretion.errors import InvalidDeclaration
from discretion.noise import simulation
from discretion.peers.account import Account
from discretion.peers.crowd import CATALOGUE, Crowd, invent, run, village
from discretion.peers.holding import Terms
from discretion.peers.outcome import Outcome
from discretion.peers.service import Rhythm, invitation
from discretion.preference import MICRO
from discretion.social.exchange import Exchange
from discretion.social.gossip import explore
from discretion.social.response import Response
from discretion.social.similarity import ScalarProduct


def crowd(folder, number, *, method="product", epsilon=0.5, budget=1.2, **rhythm):
    return Crowd(
        folder=folder,
        number=number,
        terms=Terms.of(CATALOGUE, method=method, epsilon=epsilon),
        epsilon=epsilon,
        budget=budget,
        neighbours=2,
        rhythm=Rhythm(**rhythm),
        seed=1,
    )


def explored(made):
    """Start three peers and let them explore once; return the profiles."""
    parts = made.write()
    try:
        made.launch(0)
        made.wait("listening", [0])
        made.launch(1)
        made.launch(2)
        made.wait("joined", [1, 2])
        made.begin()
        made.wait("explored", [0, 1, 2])
    except BaseException:
        made.stop()
        raise
    return parts


def test_processes_find_one_another_and_one_that_is_killed_comes_back(tmp_path):
    """Three processes; one is killed with -9 after it has paid, and started again with the same account."""
    for seconds in (1.0, 5.0, 25.0):  # a busy machine needs longer cycles
        folder = tmp_path / f"{seconds:g}"
        made = crowd(folder, 3, cycles=1, seconds=seconds)
        parts = explored(made)
        spent = made.outcome(parts).spent[1]
        if spent > 0:
            break
        made.stop()
    try:
        assert spent > 0
        name = made.told(1, "listening").partition("@")[0]
        made.running[1].send_signal(signal.SIGKILL)
        assert -signal.SIGKILL == made.running[1].wait()
        (folder / "log-1.txt").unlink()
        made.begin()
        made.launch(1)
        made.wait("explored", [1])
        back = made.outcome(parts)
        assert name == made.told(1, "listening").partition("@")[0]
        assert spent <= back.spent[1]
        assert all(each <= 1_200_000 for each in back.spent)
        assert all(500_000 * number <= each for number, each in zip(back.compared, back.spent, strict=True))
    finally:
        made.stop()
    assert [0, 0, 0] == [process.returncode for process in made.running.values()]
    told = CliRunner().invoke(app, ["peer", "receipt", "--account", str(folder / "peer-1"), "--json"])
    receipt = json.loads(told.output)
    assert back.spent[1] == round(receipt["spent"] * MICRO)
    assert 1.2 == receipt["budget"]
    shown = CliRunner().invoke(app, ["peer", "receipt", "--account", str(folder / "peer-1")])
    assert "product with" in shown.output


@lru_cache
def simulated(method, epsilon, budget, *, runs=200, peers=1, draws=2, friends=0.5, seed=0):
    """(run, statistic): the same people and protocol in one process."""
    training, home, rng = invent(30, seed).training, village(30), simulation(5)
    rows = []
    for _ in range(runs):
        if method == "product":
            price = int(epsilon * MICRO)
            similarity = ScalarProduct(profiles=training, micro_epsilon=price, coefficient="product", draws=draws)
        else:
            similarity = Response.publish(training, epsilon=epsilon)
        found = explore(Exchange(similarity, budget=budget, rng=rng), peers=peers, friends=friends)
        views = [[friend for friend in row if friend >= 0] for row in found.neighbours.tolist()]
        rows.append(statistics(views, found.releases, found.spent, home))
    return np.array(rows)


def statistics(views, compared, spent, home):
    """The share of friends of one's own village, how many peers were compared (mean and spread), and mean spending."""
    own = [home[a] == home[b] for a, view in enumerate(views) for b in view]
    return np.mean(own), np.mean(compared), np.std(compared), np.mean(spent) / MICRO


def distance(found, law):
    """How many standard deviations of a single run each statistic is from the mean of the simulation."""
    spread = np.maximum(law.std(axis=0, ddof=1), 1e-9)
    return np.abs(found - law.mean(axis=0)) / spread


METHODS = {"product": (2.0, 100.0), "response": (4.0, 4.0)}  # ε of a comparison or publication, and the budget
LIMIT = 6.5  # four nearly normal statistics and two methods: a false alarm in 8 · 8e-11 < 1e-9 of all nights


@pytest.mark.slow
@pytest.mark.xdist_group("crowd")
@pytest.mark.parametrize("method", METHODS)
def test_thirty_processes_have_the_law_of_the_simulation(tmp_path, method):
    epsilon, budget = METHODS[method]
    outcome = run(
        tmp_path,
        number=30,
        method=method,
        epsilon=epsilon,
        budget=budget,
        neighbours=10,
        rhythm=Rhythm(seconds=4.0),
        seed=0,
    )
    assert max(outcome.spent) <= budget * MICRO
    found = np.array(statistics(outcome.neighbours, outcome.compared, outcome.spent, outcome.villages))
    assert np.all(distance(found, simulated(method, epsilon, budget)) < LIMIT), (found, outcome.summary())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "planted"),
    [
        ("product", {"peers": 2}),
        ("product", {"budget": 30.0}),
        ("product", {"epsilon": 0.1}),  # another price, hence more noise
        ("response", {"epsilon": 0.1}),
        ("response", {"peers": 2}),
    ],
)
def test_one_run_of_thirty_would_show_another_law(method, planted):
    """Nine of ten single runs with a planted fault are beyond the limit in at least one statistic."""
    epsilon, budget = METHODS[method]
    right = simulated(method, epsilon, budget)
    wrong = simulated(method, **{"epsilon": epsilon, "budget": budget, "runs": 40, **planted})
    beyond = [np.any(distance(row, right) > LIMIT) for row in wrong]
    assert np.mean(beyond) >= 0.9


def test_the_command_line_loads_without_the_extra():
    hide = "import sys; sys.modules.update(dict.fromkeys(('phe', 'gmpy2', 'cryptography')))"
    run_process([sys.executable, "-c", f"{hide}; import discretion.cli, discretion.social"], check=True)


def test_wrong_usage_is_refused(tmp_path):
    for text in ("host", "host:", ":1", "host:99999", "ab@host:1", f"{'g' * 64}@host:1"):
        with pytest.raises(InvalidDeclaration, match="HOST:PORT"):
            invitation(text)
    assert "ab" * 32 == invitation(f"{'ab' * 32}@host:1")[1]
    assert 7 == invitation("::1:7")[0].port
    for options in ({"peers": 4}, {"seconds": 0.01}, {"cycles": -1}):
        with pytest.raises(InvalidDeclaration, match="1 to 3 others"):
            Rhythm(**options)
    told = CliRunner().invoke(app, ["peer", "receipt", "--account", str(tmp_path / "nobody")])
    assert 2 == told.exit_code
    assert "There is no account" in told.output
    with pytest.raises(InvalidDeclaration, match="no account"):
        Account(None)


def test_the_picture_and_the_tables_show_everybody(tmp_path):
    outcome = Outcome(
        method="product",
        villages=village(4).tolist(),
        neighbours=[[1], [0], [], [0, 1]],
        width=2,
        spent=[MICRO, MICRO, 0, 2 * MICRO],
        compared=[1, 1, 0, 2],
        budget=4.0,
        parts=invent(4, 0),
    )
    assert "clusters.png" in outcome.draw(tmp_path / "clusters.png")
    assert (tmp_path / "clusters.png").stat().st_size > 10_000
    assert 4 == len(outcome.sheets()[1].rows)
    written = json.loads(outcome.to_json())
    assert [[1], [0], [], [0, 1]] == written["neighbours"]
    assert 0.25 == outcome.own_village  # 0 and 3 live in one village
    assert 2.0 == written["ε spent, largest"]
