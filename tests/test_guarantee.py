from dataclasses import replace

import pytest

from discretion.errors import InvalidDeclaration
from discretion.guarantee import Guarantee, Loss
from discretion.preference import Specification

PEOPLE = Specification(epsilons=(100_000, 1_000_000), people=(5, 2))


def promise(*losses: int, **kind: object) -> Guarantee:
    return replace(Guarantee.of(PEOPLE, losses, protects="value"), **kind)


def test_losses_add_up_cohort_by_cohort():
    total = promise(10, 20) + promise(1, 2)
    assert {0: Loss(11), 1: Loss(22)} == dict(total.losses)


def test_a_cohort_that_only_one_release_used_pays_only_for_that():
    only = Guarantee(protects="value", losses={0: Loss(7, 3)})
    assert {0: Loss(17, 3), 1: Loss(20)} == dict((promise(10, 20) + only).losses)


def test_float_arithmetic_is_contagious():
    assert "float" == (promise(1, 1) + promise(1, 1, arithmetic="float")).arithmetic


@pytest.mark.parametrize("other", [{"model": "individual"}, {"unit": "item"}])
def test_guarantees_of_different_kinds_do_not_add_up(other):
    with pytest.raises(InvalidDeclaration, match="do not add up"):
        promise(1, 1) + promise(1, 1, **other)
    with pytest.raises(InvalidDeclaration, match="do not add up"):
        promise(1, 1) + Guarantee.of(PEOPLE, (1, 1), protects="presence")


def test_it_honours_a_specification_when_nobody_loses_more_than_they_have():
    assert promise(100_000, 1_000_000).honours(PEOPLE)
    assert not promise(100_001, 0).honours(PEOPLE)
    assert not Guarantee(protects="value", losses={5: Loss(1)}).honours(PEOPLE)


def test_delta_is_honoured_only_up_to_what_is_allowed():
    approximate = Guarantee(protects="value", losses={0: Loss(1, 1_000_000)})
    assert not approximate.honours(PEOPLE)
    assert approximate.honours(PEOPLE, pico_delta=1_000_000)


def test_real_losses_round_up():
    assert Loss(123_457, 2) == Loss.up(0.1234561, 1.5e-12)


def test_a_negative_loss_is_refused():
    with pytest.raises(InvalidDeclaration, match="below 0"):
        promise(-1, 0)


def test_it_reads_as_a_promise():
    assert "protects value of each person: ε from 0.1 to 0.5, by what people chose" in str(promise(100_000, 500_000))
    assert "ε = 0.1 for everybody" in str(promise(100_000, 100_000))
    individual = promise(1, 2, model="individual")
    assert "NOT differential privacy" in str(individual)
    assert not individual.is_differential_privacy
    assert "δ = 1e-06" in str(Guarantee(protects="value", losses={1: Loss(1, 1_000_000)}))
