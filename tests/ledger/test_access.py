"""Who may use the service is on record: grants, tokens, links and invitations, all of them revocable."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from discretion.errors import AccessDenied, InvalidDeclaration
from discretion.ledger import Access
from discretion.ledger.access import mark_of
from discretion.ledger.audit import audit_ledger
from ledgers import clinic

PAST = timedelta(microseconds=1)


@pytest.fixture
def access(place):
    with clinic(place) as ledger:
        yield Access(ledger)
    assert audit_ledger(place).passed


def refused(act, *arguments):
    with pytest.raises(AccessDenied) as refusal:
        act(*arguments)
    return str(refusal.value)


def test_a_token_stands_for_its_member_until_it_or_the_member_is_revoked(access):
    access.add("ada", "analyst")
    first, second = access.token("ada", label="laptop"), access.token("ada")
    assert ("ada", "analyst") == (access.who_has(first).name, access.who_has(first).role)
    access.withdraw(access.tokens()[0].id)
    words = refused(access.who_has, first)
    assert "ada" == access.who_has(second).name
    access.revoke("ada")
    assert words == refused(access.who_has, second)
    access.add("ada", "steward")
    assert words == refused(access.who_has, second)  # the new role does not revive old tokens


def test_secrets_are_long_different_and_not_in_the_ledger(access):
    access.add("ada", "analyst")
    secrets = [access.token("ada"), access.link("ada"), access.invite("people", ["ann"])[1][0][1]]
    assert 3 == len(set(secrets))
    assert all(len(secret.replace("-", "")) >= 26 for secret in secrets)
    with access._store.reading() as db:
        kept = str([db.exec_driver_sql(f"SELECT * FROM discretion_{name}").all() for name in ("entry", "token")])
    assert not [secret for secret in secrets if secret in kept]
    assert all(mark_of(secret) in kept for secret in secrets[:2])


def test_a_link_signs_in_once_even_if_many_try_at_once(access):
    access.add("sam", "steward")
    link = access.link("sam")

    def tried(_):
        try:
            return access.accept(link).name
        except AccessDenied:
            return ""

    with ThreadPoolExecutor(6) as pool:
        assert ["", "", "", "", "", "sam"] == sorted(pool.map(tried, range(6)))


def test_an_invitation_names_one_person_and_works_once_as_it_is_typed(access):
    entry, letters = access.invite("people")
    assert ["ann", "ben", "cleo", "dan", "eve", "fay"] == [person for person, _ in letters]
    typed = letters[2][1].upper().replace("-", " ")
    found = access.accept(typed)
    assert ("people", "cleo") == (found.register, found.person)
    words = refused(access.accept, typed)
    assert found == access.invited(found.digest)  # the session that it opened stays valid
    access.withdraw_all(entry)
    assert access.invited(found.digest) is None
    assert words == refused(access.accept, letters[0][1])


def test_a_new_invitation_replaces_the_earlier_one_and_ends_its_session(access):
    (_, [(_, first)]), (_, [(_, other)]) = access.invite("people", ["ann"]), access.invite("people", ["dan"])
    began = access.accept(first)
    _, [(_, second)] = access.invite("people", ["ann"])
    words = refused(access.accept, first)
    assert access.invited(began.digest) is None
    _, [(_, third)] = access.invite("people", ["ann"])
    assert words == refused(access.accept, second)
    assert "ann" == access.accept(third).person
    access.withdraw(mark_of(third)[:12])
    assert [words, words] == [refused(access.accept, code) for code in (second, third)]  # nothing is valid again
    assert "dan" == access.accept(other).person


def test_every_refusal_reads_the_same(access):
    access.add("sam", "steward")
    token = access.token("sam")
    expired = access.link("sam", lasts=PAST)
    late = access.invite("people", ["ann"], lasts=PAST)[1][0][1]
    made_up = "aaaaa-bbbbb-ccccc-ddddd-eeeee-f"
    assert 1 == len({refused(access.accept, one) for one in (token, expired, late, made_up, "", "é", "x" * 999)})
    assert 1 == len({refused(access.who_has, one) for one in (expired, late, made_up, "", "é", "x" * 999)})


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda access: access.add("ada", "king"), "'king'"),
        (lambda access: access.add(" ada", "analyst"), "' ada'"),
        (lambda access: access.add("sam", "analyst"), "is a member already, as steward"),
        (lambda access: access.revoke("nobody"), "no member 'nobody'"),
        (lambda access: access.token("nobody"), "no member 'nobody'"),
        (lambda access: access.token("sam", lasts=timedelta(0)), "more than 0"),
        (lambda access: access.withdraw("%%%%%%%%%%%%"), "12 letters and digits"),
        (lambda access: access.withdraw("0" * 12), "no token or invitation"),
        (lambda access: access.invite("people", ["nobody"]), "does not have 1 of the people"),
        (lambda access: access.invite("people", ["ann", "ann"]), "named twice"),
        (lambda access: access.withdraw_all("1-000000000000"), "no entry|did not invite"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(access, act, told):
    access.add("sam", "steward")
    with pytest.raises(InvalidDeclaration, match=told):
        act(access)


def test_the_entries_name_no_person(access):
    access.invite("people", ["cleo"])
    with access._store.reading() as db:
        assert "cleo" not in str(db.exec_driver_sql("SELECT body FROM discretion_entry").all())
