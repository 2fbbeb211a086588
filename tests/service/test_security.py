"""Attacks on the service: forged and replayed links, foreign pages, guesses, paths, sizes and slow bodies."""

import hmac
import json
import socket
from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from discretion.errors import InvalidDeclaration, ServiceFailed
from discretion.service.app import HEADERS
from discretion.service.folder import inside, refuse_new_links
from discretion.service.house import Settings
from discretion.service.identity import Sessions, is_same_origin, signing_key
from discretion.service.limit import LARGEST_BODY, Buckets, Rate, Rates
from discretion.service.problem import Refused
from discretion.service.server import placed
from served import COUNT, Served, served

PERSON = 7


@pytest.fixture
def person(town: Served):
    with town.browser(town.letter(PERSON)) as client:
        yield client


def me(client) -> str:
    response = client.get("/v1/me")
    return response.json()["role"] if response.status_code == 200 else "nobody"


# Links --------------------------------------------------------------------------------------------------------------


def test_following_a_link_does_nothing_until_the_button_is_pressed(town):
    code = town.letter(PERSON)
    with town.http() as scanner:
        page = scanner.get("/sign-in", params={"code": code})
        assert 200 == page.status_code
        assert "set-cookie" not in page.headers
        assert "nobody" == me(scanner)
    with town.browser(code) as client:
        assert "person" == me(client)


def test_a_link_that_was_used_revoked_or_invented_is_refused_in_the_same_words(town):
    replaced, used = town.letter(PERSON), town.letter(PERSON)
    revoked = town.house.access.invite("patients", [PERSON + 1])
    town.browser(used).close()
    town.house.access.withdraw_all(revoked[0])
    invented = used[:-1] + ("a" if used[-1] != "a" else "b")
    answers = set()
    with town.http() as client:
        for code in (used, replaced, revoked[1][0][1], invented, "", "x" * 150, "🙂", town.tokens["ada"], "a\0b"):
            response = client.post("/sign-in", data={"code": code})
            answers.add((response.status_code, response.text, "set-cookie" in response.headers))
    assert 1 == len(answers)
    assert (403, False) == (answers.copy().pop()[0], answers.pop()[2])


def test_a_link_of_a_member_is_not_a_token_and_a_token_is_not_a_link(town):
    link = town.house.access.link("ada")
    with town.http("", Authorization=f"Bearer {link}") as client:
        assert 401 == client.get("/v1/me").status_code
    with town.browser(link) as client:
        assert "analyst" == me(client)


def test_a_revoked_invitation_ends_the_session_it_began(town):
    entry, letters = town.house.access.invite("patients", [PERSON])
    with town.browser(letters[0][1]) as client:
        assert "person" == me(client)
        town.house.access.withdraw_all(entry)
        assert "nobody" == me(client)


# Sessions -----------------------------------------------------------------------------------------------------------


def test_a_cookie_is_out_of_reach_for_scripts_and_other_sites(town):
    with town.http() as client:
        response = client.post("/sign-in", data={"code": town.letter(PERSON)})
    told = response.headers["set-cookie"]
    assert {"HttpOnly", "Path=/", "SameSite=lax"} <= {part.strip() for part in told.split(";")}
    assert "Domain" not in told
    assert str(PERSON) not in told.partition("=")[2][:5]


def test_a_cookie_over_tls_is_bound_to_its_host(town):
    sessions = Sessions(town.house.access, b"k" * 32, secure=True)
    assert "__Host-discretion" == sessions.cookie


def test_a_forged_cookie_is_nobodys(town, person):
    cookie = person.headers["cookie"].partition("=")[2]
    body, _, seal = cookie.partition(".")
    facts = {"until": 9e9, "nonce": "0", "member": "sam", "granted": 5}
    forged = urlsafe_b64encode(json.dumps(facts).encode()).decode()
    other = hmac.new(b"guess", f"session:{forged}".encode(), sha256).hexdigest()
    csrf = hmac.new(b"", b"", sha256).hexdigest()
    for tried in (f"{forged}.{seal}", f"{forged}.{other}", f"{forged}.", forged, f"{body}.{csrf}", ".", "x" * 5_000):
        with town.http("", Cookie=f"discretion={tried}") as client:
            assert "nobody" == me(client), tried


def test_a_session_that_an_attacker_brings_is_replaced_at_sign_in(town):
    """Session fixation: whatever cookie is there before, another one is there afterwards."""
    with town.browser(town.house.access.link("bob")) as attacker:
        planted = attacker.headers["cookie"]
    with town.http("", Cookie=planted) as victim:
        response = victim.post("/sign-in", data={"code": town.letter(PERSON)}, headers={"Origin": town.url})
    assert planted != response.headers["set-cookie"].partition(";")[0]
    with town.http("", Cookie=planted) as attacker:
        assert "analyst" == me(attacker)  # still only their own


def test_two_sessions_of_one_link_owner_have_nothing_in_common(town):
    first, second = (town.house.sessions.begin(town.house.access.member("ada")) for _ in range(2))
    assert first.partition(".")[0] != second.partition(".")[0]
    assert town.house.sessions.read(first).csrf != town.house.sessions.read(second).csrf


def test_a_session_ends_with_its_time_and_with_the_members_role(town, monkeypatch):
    access = town.house.access
    access.add("eve", "steward")
    cookie = town.house.sessions.begin(access.member("eve"))
    assert "steward" == town.house.sessions.read(cookie).role
    access.revoke("eve")
    access.add("eve", "analyst")
    assert "nobody" == town.house.sessions.read(cookie).role
    cookie = town.house.sessions.begin(access.member("eve"))
    monkeypatch.setattr("discretion.service.identity.time", lambda: 9e9)
    assert "nobody" == town.house.sessions.read(cookie).role


def test_the_signing_key_is_made_once_and_refused_if_others_can_read_it(tmp_path):
    file = tmp_path / "key"
    assert signing_key(file) == signing_key(file)
    assert 0o600 == file.stat().st_mode & 0o777
    file.chmod(0o644)
    with pytest.raises(InvalidDeclaration, match="chmod 600"):
        signing_key(file)
    assert signing_key(None) != signing_key(None)


# Foreign pages ------------------------------------------------------------------------------------------------------


def test_a_browser_session_acts_only_with_its_own_secret(person):
    csrf = person.get("/v1/me").json()["csrf"]
    for token in ("", "x", csrf[:-1], csrf.upper() + "x"):
        assert 403 == person.post("/v1/prefer", json={"epsilon": 1}, headers={"X-CSRF-Token": token}).status_code
    assert 200 == person.post("/v1/prefer", json={"epsilon": 1}, headers={"X-CSRF-Token": csrf}).status_code


@pytest.mark.parametrize(
    "foreign",
    [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}],
    ids=lambda one: next(iter(one.values())),
)
def test_what_another_site_sends_is_refused_even_with_the_secret(town, person, foreign):
    csrf = person.get("/v1/me").json()["csrf"]
    refused = person.post("/v1/prefer", json={"epsilon": 1}, headers={"X-CSRF-Token": csrf, **foreign})
    assert 403 == refused.status_code
    with town.http() as client:  # nobody is signed in behind their back either
        assert 403 == client.post("/sign-in", data={"code": town.letter(PERSON)}, headers=foreign).status_code


def test_a_form_of_another_site_cannot_send_json(person):
    csrf = person.get("/v1/me").json()["csrf"]
    sent = person.post(
        "/v1/prefer", content='{"epsilon": 1}', headers={"X-CSRF-Token": csrf, "Content-Type": "text/plain"}
    )
    assert 415 == sent.status_code


def test_programs_without_an_origin_are_not_foreign():
    assert is_same_origin({}, "https://a")
    assert not is_same_origin({"origin": "https://b"}, "https://a")
    assert not is_same_origin({"sec-fetch-site": "same-site"}, "https://a")


def test_a_request_that_names_another_host_is_refused(town):
    with town.http("ada", Host="evil.example") as client:
        assert 421 == client.get("/v1/tables").status_code
    with town.http("ada", Host=f"localhost:{urlsplit(town.url).port}") as client:
        assert 200 == client.get("/v1/tables").status_code


def test_every_answer_has_the_headers_that_protect_browsers(town, person):
    with town.http() as client:
        found = [
            client.get(path) for path in ("/", "/sign-in", "/health", "/v1/tables", "/nowhere", "/static/style.css")
        ]
    found += [person.get("/v1/receipt"), person.post("/v1/prefer", json={})]
    for response in found:
        for name, value in HEADERS.items():
            if name == "Cache-Control" and "/static/" in str(response.url):
                assert "public" in response.headers[name]
            else:
                assert value == response.headers[name], (name, response.url)
        assert "server" not in response.headers
        assert "unsafe-inline" not in response.headers["content-security-policy"]


def test_what_is_shown_on_a_page_is_escaped(town):
    with town.http() as client:
        page = client.get("/sign-in", params={"code": "\"><script>alert('x')</script>"}).text
    assert "<script>alert" not in page


# Guessing and flooding ----------------------------------------------------------------------------------------------


def test_guesses_run_out_for_links_and_for_tokens(tmp_path):
    rates = Rates(sign_in=Rate(second=0.001, burst=4))
    with served(tmp_path, rates=rates, workers=1) as town, town.http() as client:
        statuses = [client.post("/sign-in", data={"code": f"guess {n}"}).status_code for n in range(6)]
        assert [403] * 4 + [429] * 2 == statuses
        good = town.letter(PERSON)
        assert 429 == client.post("/sign-in", data={"code": good}).status_code  # not even a right one
        wrong = client.get("/v1/me", headers={"Authorization": "Bearer wrong"})
        assert (429, True) == (wrong.status_code, int(wrong.headers["retry-after"]) >= 1)


def test_a_person_cannot_flood_the_ledger_with_changes(tmp_path):
    rates = Rates(changes=Rate(second=0.001, burst=2))
    with served(tmp_path, rates=rates) as town, town.browser(town.letter(PERSON)) as person:
        csrf = {"X-CSRF-Token": person.get("/v1/me").json()["csrf"]}
        sent = [person.post("/v1/prefer", json={"epsilon": 1}, headers=csrf).status_code for _ in range(4)]
        assert [200, 200, 429, 429] == sent


def test_a_bucket_refuses_when_it_is_empty_and_fills_with_time():
    now = [0.0]
    bucket = Buckets(Rate(second=2, burst=3), clock=lambda: now[0])
    for _ in range(3):
        bucket.take("ada")
    bucket.take("bob")  # others have their own
    with pytest.raises(Refused, match="1 s"):
        bucket.take("ada")
    now[0] = 0.5
    bucket.take("ada")
    with pytest.raises(Refused):
        bucket.take("ada")


def test_a_body_that_is_too_large_is_refused_whether_it_says_so_or_not(town):
    with town.http("ada") as client:
        large = b'{"sql": "' + b"x" * LARGEST_BODY + b'"}'
        headers = {"Content-Type": "application/json"}
        assert 413 == client.post("/v1/query", content=large, headers=headers).status_code
        chunks = (b"x" * 65_536 for _ in range(64))
        assert 413 == client.post("/v1/query", content=chunks, headers=headers).status_code


def test_a_body_that_does_not_arrive_is_given_up(town, monkeypatch):
    monkeypatch.setattr("discretion.service.app.body_of.__defaults__", (LARGEST_BODY, 0.3))
    with socket.create_connection(("127.0.0.1", urlsplit(town.url).port)) as slow:
        start = monotonic()
        head = f"POST /sign-in HTTP/1.1\r\nHost: {urlsplit(town.url).netloc}\r\nContent-Length: 1000\r\n\r\ncode="
        slow.sendall(head.encode())
        slow.settimeout(20)
        assert b" 408 " in slow.recv(1_000)
        assert monotonic() - start < 15


@pytest.mark.parametrize("length", ["-1", "1e3", "nonsense", str(2**80), "１"])
def test_a_nonsensical_length_is_refused(town, length):
    with socket.create_connection(("127.0.0.1", urlsplit(town.url).port)) as client:
        netloc = urlsplit(town.url).netloc
        client.sendall(f"POST /sign-in HTTP/1.1\r\nHost: {netloc}\r\nContent-Length: {length}\r\n\r\n".encode())
        client.settimeout(20)
        assert client.recv(100)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 413")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "null",
        "{",
        '{"sql": NaN}',
        '{"sql": 1}',
        '{"sql": "SELECT 1", "x": 1}',
        '{"sql": "SELECT 1", "sql": "SELECT 2"}',
        "[" * 100_000,
        '{"sql": "\\ud800"}',
        '{"sql": "\\u0000"}',
        '{"sql": "SELECT 1", "share": 1e400}',
        '{"share": true}',
    ],
)
def test_a_body_that_makes_no_sense_is_refused_with_a_reason(town, body):
    with town.http("ada", **{"Content-Type": "application/json"}) as client:
        response = client.post("/v1/explain", content=body.encode())
    assert response.status_code in (400, 422)
    assert "application/problem+json" == response.headers["content-type"]
    assert {"type", "title", "status", "code", "detail"} == set(response.json())


# Sources ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "/etc/passwd",
        "/",
        "../x.parquet",
        "a/../../x",
        "https://evil.example/x.parquet",
        "s3://bucket/x",
        "file:///etc/passwd",
        "http://169.254.169.254/latest/meta-data",
        "postgresql://localhost/x#t",
        "link.parquet",
        "linked/x.parquet",
        "linked/",
        "*.parquet",
        "none.parquet",
        "",
        ".",
        "x.parquet\n/etc/passwd",
        "~/x",
        "x.parquet\x00",
        "link*",
    ],
)
def test_a_source_outside_the_data_folder_is_refused(tmp_path, source):
    data, other = tmp_path / "data", tmp_path / "other"
    data.mkdir(), other.mkdir()
    (data / "x.parquet").touch()
    (other / "x.parquet").touch()
    (data / "link.parquet").symlink_to(other / "x.parquet")
    (data / "linked").symlink_to(other)
    with pytest.raises(InvalidDeclaration, match="must be a file below"):
        inside(data, source)


def test_a_source_inside_the_data_folder_is_taken_and_without_a_folder_none_is(tmp_path):
    (tmp_path / "year").mkdir()
    for name in ("a.parquet", "b.parquet", "year/c.csv"):
        (tmp_path / name).touch()
    for source in ("a.parquet", "*.parquet", "year/c.csv", "year/", "a.parquet#t"):
        assert f"{tmp_path.resolve()}/{source}" == inside(tmp_path, source)
    with pytest.raises(InvalidDeclaration, match="without --data"):
        inside(None, "a.parquet")


def test_sources_by_http_stay_inside_for_tables_registers_lookups_and_refresh(town):
    with town.http("sam") as client:
        declared = {"name": "x", "source": "/etc/passwd", "person": "a", "epsilon": "b"}
        tries = [
            client.post("/v1/protect", json=declared),
            client.post("/v1/register", json=declared),
            client.post("/v1/refresh", json={"name": "patients", "source": "/etc/passwd"}),
            client.post(
                "/v1/protect", json={**declared, "source": "more.parquet", "lookups": {"y": ["/etc/passwd", "k"]}}
            ),
        ]
    assert [422] * 4 == [response.status_code for response in tries]
    assert all("must be a file below" in response.json()["detail"] for response in tries)
    assert not [response for response in tries if "root:" in response.text]


def test_a_refresh_does_not_follow_a_link_that_was_put_into_the_data_folder_later(tmp_path):
    data, other = tmp_path / "data", tmp_path / "other"
    data.mkdir(), other.mkdir()
    with served(data) as town, town.http("sam") as client:
        (data / "patients.parquet").rename(other / "patients.parquet")
        (data / "patients.parquet").symlink_to(other / "patients.parquet")
        refused = client.post("/v1/refresh", json={"name": "patients"})
        assert 422 == refused.status_code
        assert "must be a file below" in refused.json()["detail"]
        (data / "patients.parquet").unlink()
        (other / "patients.parquet").rename(data / "patients.parquet")
        assert 200 == client.post("/v1/refresh", json={"name": "patients"}).status_code


def test_what_the_operator_protected_elsewhere_may_be_read_again(tmp_path):
    (tmp_path / "x.parquet").touch()
    (tmp_path / "data").mkdir()
    refuse_new_links(tmp_path / "data", [str(tmp_path / "x.parquet"), str(tmp_path / "data" / "gone.parquet")])
    refuse_new_links(None, [str(tmp_path / "x.parquet")])


# Where it listens ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "clinic.example"])
def test_others_are_let_in_only_over_an_encrypted_way(host):
    here, named = {"host": host, "port": 8000}, Settings(ledger="x", url="https://clinic.example/")
    with pytest.raises(InvalidDeclaration, match="Without TLS"):
        placed(named, **here, tls=False, behind_proxy=False)
    with pytest.raises(InvalidDeclaration, match="--url"):
        placed(Settings(ledger="x"), **here, tls=True, behind_proxy=False)
    with pytest.raises(InvalidDeclaration, match="https://"):
        placed(Settings(ledger="x", url="http://clinic.example"), **here, tls=False, behind_proxy=True)
    for how in ({"tls": True, "behind_proxy": False}, {"tls": False, "behind_proxy": True}):
        found = placed(named, **here, **how)
        assert (True, "https://clinic.example") == (found.secure, found.url)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_this_machine_needs_no_encryption(host):
    assert not placed(Settings(ledger="x"), host=host, port=8000, tls=False, behind_proxy=False).secure


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for this machine, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    here = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(here, critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(Encoding.PEM))
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(plain)
    return folder / "cert.pem", folder / "key.pem"


def test_over_tls_cookies_are_bound_to_the_host_and_the_certificate_is_checked(tmp_path, monkeypatch):
    tls = certificate(tmp_path)
    with monkeypatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(tls[0]))
        with served(tmp_path, tls=tls) as town:
            with town.http() as client:
                response = client.post("/sign-in", data={"code": town.letter(PERSON)})
                assert "max-age" in response.headers["strict-transport-security"]
            told = response.headers["set-cookie"]
            assert told.startswith("__Host-discretion=")
            assert "Secure" in told
            with town.connect("ada") as db:
                assert db.sql(COUNT).entry
            patch.delenv("SSL_CERT_FILE")
            with town.connect("ada") as db, pytest.raises(ServiceFailed, match="cannot be reached"):
                db.tables()


def test_a_question_is_asked_in_the_name_of_the_token_only(town):
    with town.http("ada") as client:
        refused = client.post("/v1/query", json={"sql": COUNT, "analyst": "bob"})
        assert (422, True) == (refused.status_code, "'analyst'" in refused.json()["detail"])


def test_a_name_that_is_too_long_for_a_file_is_refused(tmp_path):
    with pytest.raises(InvalidDeclaration, match="must be a file below"):
        inside(tmp_path, "x" * 5_000)


def test_an_empty_list_invites_nobody(town):
    with town.http("sam") as client:
        response = client.post("/v1/invitations", json={"register": "patients", "people": []})
    assert 422 == response.status_code
    assert "names nobody" in response.json()["detail"]
