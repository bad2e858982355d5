"""The pages over HTTP: answers are kept, forms are checked, and nothing malformed is a traceback."""

from __future__ import annotations

import re
import sqlite3
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from unskew.errors import UsageError
from unskew.online.judging.app import make_app
from unskew.online.judging.database import read_judged
from unskew.online.judging.sessions import Sessions, clean_name

BASE = "http://127.0.0.1:8765"


@pytest.fixture
def site(desk_and_database):
    """Makes a browser of a study's pages; its forms come from the right origin."""

    def make(n=6, timeout=5.0, **options):
        desk, database = desk_and_database(n, timeout=timeout)
        app = make_app(desk, database, **options)

        def browser(**headers):
            return TestClient(
                app, base_url=BASE, headers={"Origin": BASE, **headers}, follow_redirects=True
            )

        return desk, database, browser

    return make


def field(page, name):
    """The value of a hidden field of a page."""
    return re.search(rf'name="{name}" value="([^"]*)"', page.text).group(1)


def sign_in(browser, name):
    """Sign in and return the first question's page."""
    token = field(browser.get("/"), "token")
    return browser.post("/name", data={"token": token, "name": name})


def answer(browser, page, value, reason=""):
    """Answer the question of a page and return what follows."""
    data = {"token": field(page, "token"), "question": field(page, "question")}
    return browser.post("/answer", data={**data, "answer": value, "reason": reason})


def test_a_whole_session(site):
    """An assessor answers all questions, sees the progress, and every answer is in the database."""
    desk, database, browser = site()
    client = browser()
    page = sign_in(client, "Ann")
    given_answers = ["left", "same", "both_bad", "right", "skip", "left"]
    for k, value in enumerate(given_answers):
        assert f"{k} of 6 judged" in page.text
        page = answer(client, page, value, reason=f"reason {k}")
        assert len(read_judged(database.path).judgements) == k + 1
    assert "All judged" in page.text
    found = read_judged(database.path).judgements
    assert [j.answer.value for j in found] == given_answers
    assert [j.reason for j in found] == [f"reason {k}" for k in range(6)]
    for judgement in found:
        number = next(k for k, q in desk.questions.items() if q.query.query == judgement.query)
        assert judgement.a_was_left == desk.a_is_left("Ann", number)


def test_left_is_left(site):
    """What the page shows on the left is the list that the answer "left" counts for."""
    desk, database, browser = site()
    client = browser()
    page = sign_in(client, "Ann")
    shown = re.findall(r'data-doc="(d\d)"', page.text)[:3]
    answer(client, page, "left")
    (judgement,) = read_judged(database.path).judgements
    (question,) = [q for q in desk.questions.values() if q.query.query == judgement.query]
    winner = question.list_a if judgement.outcome == "win" else question.list_b
    assert tuple(shown) == winner


def test_pages_are_blind(site):
    """No page, header or address names a ranker or tells which list is whose."""
    _, _, browser = site()
    client = browser()
    for page in (client.get("/"), sign_in(client, "Ann")):
        assert not re.search(r"\b(new|old)\b|list_a|list_b|a_was_left", page.text)


def test_refresh_shows_the_same(site):
    """Loading the page again gives the same question with the same sides."""
    _, _, browser = site()
    client = browser()
    page = sign_in(client, "Ann")
    assert client.get("/judge").text == page.text


def test_undo_and_answer_again(site):
    """Undo brings the question back with its reason; undoing twice by a double click undoes one."""
    _, database, browser = site()
    client = browser()
    first = sign_in(client, "Ann")
    second = answer(client, first, "left", "because")
    third = answer(client, second, "left")
    undo = {"token": field(third, "token"), "given": field(third, "given")}
    back = client.post("/undo", data=undo)
    assert field(back, "question") == field(second, "question")
    assert "You took back" in back.text
    client.post("/undo", data=undo)
    assert len(read_judged(database.path).judgements) == 1
    answer(client, back, "both_bad")
    assert [j.answer.value for j in read_judged(database.path).judgements] == ["left", "both_bad"]


def test_undo_goes_further_back(site):
    """Undo after undo takes the answers back one by one, the latest first."""
    _, database, browser = site()
    client = browser()
    first = sign_in(client, "Ann")
    second = answer(client, first, "left")
    page = answer(client, second, "right")
    for asked in (second, first):
        undo = {"token": field(page, "token"), "given": field(page, "given")}
        page = client.post("/undo", data=undo)
        assert field(page, "question") == field(asked, "question")
    assert read_judged(database.path).judgements == ()


def test_skipped_can_be_judged_later(site):
    """At the end the skipped questions can be asked again."""
    _, _, browser = site(n=2)
    client = browser()
    page = answer(client, answer(client, sign_in(client, "Ann"), "skip"), "same")
    assert "Judge the 1 skipped" in page.text
    page = client.post("/revisit", data={"token": field(page, "token")})
    assert "1 of 2 judged" in page.text


def test_sent_twice(site):
    """The same form sent again is accepted and counted once; another answer to it is a conflict."""
    _, database, browser = site()
    client = browser()
    page = sign_in(client, "Ann")
    for _ in range(3):
        assert answer(client, page, "left").status_code == 200
    conflict = answer(client, page, "right")
    assert conflict.status_code == 409
    assert "that answer was kept" in conflict.text
    assert [j.answer.value for j in read_judged(database.path).judgements] == ["left"]


def test_two_assessors_do_not_mix(site):
    """Two browsers have sessions, orders and sides of their own."""
    _, database, browser = site()
    ann, bob = browser(), browser()
    page_ann, page_bob = sign_in(ann, "Ann"), sign_in(bob, "Bob")
    for _ in range(3):
        page_ann = answer(ann, page_ann, "left")
        page_bob = answer(bob, page_bob, "right")
    found = read_judged(database.path).judgements
    assert {(j.assessor, j.answer.value) for j in found} == {("Ann", "left"), ("Bob", "right")}
    assert "3 of 6 judged" in page_ann.text


def test_a_page_left_open_by_another(site):
    """A form of Ann's page is refused after Bob signed in with the same browser."""
    _, database, browser = site()
    client = browser()
    page = sign_in(client, "Ann")
    client.post("/leave", data={"token": field(page, "token")})
    sign_in(client, "Bob")
    assert answer(client, page, "left").status_code == 403
    assert read_judged(database.path).judgements == ()


def test_restart_keeps_the_session(site, desk_and_database):
    """The cookie is good after the server started again on the same database."""
    _, database, browser = site()
    client = browser()
    sign_in(client, "Ann")
    again = make_app(*desk_and_database())
    other = TestClient(again, base_url=BASE, cookies=dict(client.cookies))
    assert "0 of 6 judged" in other.get("/judge").text
    assert database.secret not in str(dict(client.cookies))


def test_only_named_assessors(site):
    """With a list of assessors nobody else can judge, not even with an older cookie."""
    _, _, browser = site(assessors=["Ann", "Zoë"])
    client = browser()
    assert "<option>Zoë</option>" in client.get("/").text
    assert sign_in(client, "Bob").status_code == 400
    assert "not among the assessors" in sign_in(client, "Bob").text
    assert "0 of 6 judged" in sign_in(client, "Zoe\u0308").text


@pytest.mark.parametrize("typed", ["", "   ", "x" * 61, "a\x00b", "\u202e\x07"])
def test_bad_names(site, typed):
    """A name that is empty, too long or not text is refused on the page."""
    _, _, browser = site()
    page = sign_in(browser(), typed)
    assert page.status_code == 400
    assert "a name" in page.text


def test_names_are_normalised():
    """The same name in two ways of writing is one assessor."""
    assert clean_name("  Zoe\u0308   B ") == clean_name("Zoë B") == "Zoë B"
    with pytest.raises(UsageError, match="a name has 1 to 60 characters, got 0"):
        clean_name(" ")


def test_texts_are_text(site):
    """Markup in a title or a name is escaped, and a script address is no link."""
    _, _, browser = site()
    client = browser()
    page = sign_in(client, "<b>Ann</b>")
    assert "<b>Ann" not in page.text
    assert "<script>window" not in page.text
    assert "&lt;script&gt;window.taken" in page.text
    assert 'href="javascript' not in page.text


def test_headers(site):
    """Every response, errors included, has the content security policy and its companions."""
    _, _, browser = site()
    client = browser()
    for response in (
        client.get("/"), client.get("/static/judge.js"), client.get("/none"),
        client.get("/", headers={"Host": "evil.example"}), client.post("/answer"),
    ):  # fmt: skip
        policy = response.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cache-control"] == "no-store"
    cookie = client.get("/").headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8765", 200), ("localhost:9000", 200), ("[::1]:8765", 200), ("10.0.0.7", 200),
        ("evil.example", 400), ("127.0.0.1.evil.example", 400), ("", 400), ("a@127.0.0.1", 400),
        ("127.0.0.1/x", 400), ("[::", 400),
    ],
)  # fmt: skip
def test_host(site, host, status):
    """Only this machine's names and addresses in numbers are answered to."""
    _, _, browser = site()
    assert browser().get("/", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": ""},
        {"Origin": "http://127.0.0.1:9999"}, {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)  # fmt: skip
def test_foreign_forms(site, headers):
    """A form from another origin saves nothing."""
    _, database, browser = site()
    client = browser()
    page = sign_in(client, "Ann")
    data = {"token": field(page, "token"), "question": field(page, "question"), "answer": "left"}
    assert client.post("/answer", data=data, headers=headers).status_code == 403
    del client.headers["origin"]
    assert client.post("/answer", data=data).status_code == 403
    assert read_judged(database.path).judgements == ()


@pytest.mark.parametrize("change", [{"token": "0" * 64}, {"token": ""}, {"token": "é"}])
@pytest.mark.parametrize("path", ["/answer", "/undo", "/name", "/leave", "/revisit"])
def test_tokens(site, path, change):
    """Every form needs the token of its session."""
    _, database, browser = site()
    client = browser()
    page = sign_in(client, "Ann")
    data = {"question": field(page, "question"), "answer": "left", "given": "1", "name": "Bob"}
    assert client.post(path, data={**data, **change}).status_code == 403
    assert client.post(path, data=data).status_code == 403
    assert read_judged(database.path).judgements == ()


def test_forged_cookies(site):
    """A cookie that this database did not sign is no session."""
    _, database, browser = site()
    for value in ("x", "", Sessions("0" * 64).write(Sessions("0" * 64).new("Ann"))):
        client = browser()
        client.cookies.set(Sessions(database.secret).cookie, value)
        assert "Your name" in client.get("/judge").text


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"question": "99"}, 400), ({"question": "x"}, 400), ({"question": "²"}, 400),
        ({"question": "9" * 40}, 400), ({"answer": "best"}, 400), ({"answer": ""}, 400),
        ({"reason": "x" * 2001}, 400), ({"reason": "é" * 30000}, 413), ({"question": "-1"}, 400),
    ],
)  # fmt: skip
def test_bad_answers(site, change, status):
    """An answer to nothing, of no kind, or too long is refused with its status."""
    _, database, browser = site()
    client = browser()
    page = sign_in(client, "Ann")
    data = {"token": field(page, "token"), "question": field(page, "question"), "answer": "left"}
    assert client.post("/answer", data={**data, **change}).status_code == status
    assert read_judged(database.path).judgements == ()


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"answer=left&answer=right", FORM, 400), (b"reason=%ff", FORM, 400),
        (b"\xff\xfe", FORM, 400), (b"noequals", FORM, 400), (b"", FORM, 403),
        (b"&".join(b"f%d=1" % k for k in range(50)), FORM, 400), (b"x" * 100_000, FORM, 413),
        (b"{}", {"Content-Type": "application/json"}, 415), (b"a=b", {}, 415),
        (b"--x\r\n\r\n", {"Content-Type": "multipart/form-data; boundary=x"}, 415),
    ],
)  # fmt: skip
def test_malformed_bodies(site, body, headers, status):
    """A body that is no form of ours is a 4xx error with a page, never a traceback."""
    _, _, browser = site()
    client = browser()
    sign_in(client, "Ann")
    response = client.post("/answer", content=body, headers=headers)
    assert response.status_code == status
    assert "Traceback" not in response.text


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"]),
    path=st.one_of(
        st.sampled_from(["/", "/judge", "/answer", "/undo", "/static/x", "/judge?question=%00"]),
        st.binary(max_size=30).map(lambda content: "/" + quote(content, safe="")),
    ),
    body=st.binary(max_size=200),
    kind=st.sampled_from(["application/x-www-form-urlencoded", "text/plain", ""]),
)
def test_anything_is_answered(fuzzed, method, path, body, kind):
    """Whatever a client sends, the answer is a page or a 4xx error."""
    response = fuzzed.request(method, path, content=body, headers={"Content-Type": kind})
    assert response.status_code < 500


@pytest.fixture
def fuzzed(site):
    """A signed-in browser of one application for all examples."""
    _, _, browser = site()
    client = browser()
    sign_in(client, "Ann")
    client.follow_redirects = False
    return client


def test_database_locked(site):
    """While the database is locked an answer is a 503 that says it was not saved; then it works."""
    _, database, browser = site(timeout=0.1)
    client = browser()
    page = sign_in(client, "Ann")
    other = sqlite3.connect(database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    refused = answer(client, page, "left")
    assert refused.status_code == 503
    assert "nothing was saved" in refused.text
    other.execute("ROLLBACK")
    other.close()
    assert answer(client, page, "left").status_code == 200
    assert len(read_judged(database.path).judgements) == 1


def test_our_own_mistakes_stay_inside(site, monkeypatch):
    """An error of ours is a page without its traceback, with the headers of every other."""
    desk, database, _ = site()
    app = make_app(desk, database)
    client = TestClient(app, base_url=BASE, headers={"Origin": BASE}, raise_server_exceptions=False)
    sign_in(client, "Ann")
    monkeypatch.setattr(type(database), "given", lambda *_: 1 / 0)
    page = client.get("/judge")
    assert page.status_code == 500
    assert "ZeroDivision" not in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
