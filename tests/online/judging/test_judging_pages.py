"""The pages in a real browser: by keyboard, by touch, without scripts, and with hostile texts."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

import unskew.online.judging
from unskew.online.judging.database import read_judged

STATIC = Path(unskew.online.judging.__file__).parent / "static"


class Assessor:
    """A person at a browser window of their own."""

    def __init__(self, chromium, url, **options):
        self.url = url
        self.context = chromium.new_context(**options)
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self.errors.append(f"dialog {dialog.message}"))
        self.page.on("console", self._said)
        self.context.on("request", lambda request: self.requests.append(request.url))

    def _said(self, message):
        if message.type in {"error", "warning"}:
            self.errors.append(message.text)

    def sign_in(self, name):
        """Type a name and press Enter."""
        self.page.goto(self.url)
        self.page.wait_for_function("document.activeElement.tagName === 'INPUT'")
        self.page.keyboard.type(name)
        self.page.keyboard.press("Enter")
        self.page.wait_for_url("**/judge")
        return self

    def press(self, key):
        """Press a key when the page has settled, and wait for the next page."""
        self.page.wait_for_timeout(350)
        with self.page.expect_navigation():
            self.page.keyboard.press(key)

    def follow(self, selector):
        """Click on what leads to another page, and wait for that page."""
        with self.page.expect_navigation():
            self.page.click(selector)

    @property
    def progress(self):
        """What the page says about the progress."""
        return self.page.inner_text("label[for=progress]")


@pytest.fixture
def sit_down(chromium):
    """Opens windows; after the test none of them had a script error or called another machine."""
    people = []

    def open_window(url, **options):
        people.append(Assessor(chromium, url, **options))
        return people[-1]

    yield open_window
    for person in people:
        person.context.close()
        assert not person.errors
        assert [url for url in person.requests if not url.startswith(person.url)] == []


def judged(files):
    """Every judgement in the database as (assessor, answer)."""
    return [(j.assessor, j.answer.value) for j in read_judged(files.db).judgements]


def test_keyboard_only(files, serve_here, sit_down):
    """A whole session without a mouse: name, five answers, a reason, undo, the end."""
    ann = sit_down(serve_here(files)).sign_in("Ann")
    for key in ("1", "2", "3", "ArrowRight", "5"):
        ann.press(key)
    assert ann.progress == "5 of 6 judged (1 skipped)"
    ann.press("u")
    assert ann.progress == "4 of 6 judged"
    ann.page.keyboard.press("r")
    ann.page.keyboard.type("1 good reason")
    ann.page.keyboard.press("Escape")
    ann.press("ArrowLeft")
    ann.press("4")
    assert ann.page.inner_text("h1") == "All judged. Thank you!"
    answers = ["left", "same", "both_bad", "right", "left", "right"]
    assert judged(files) == [("Ann", answer) for answer in answers]
    assert read_judged(files.db).judgements[4].reason == "1 good reason"


def test_tab_and_enter(files, serve_here, sit_down):
    """The answers are reached by Tab in the order they are seen in, and given by Enter."""
    ann = sit_down(serve_here(files)).sign_in("Ann")
    seen = []
    for _ in range(60):
        ann.page.keyboard.press("Tab")
        seen.append(ann.page.evaluate("document.activeElement.value ?? ''"))
        if seen[-1] == "right":
            break
    answers = [value for value in seen if value in {"left", "same", "both_bad", "right"}]
    assert answers == ["left", "same", "both_bad", "right"]
    ann.press("Enter")
    assert judged(files) == [("Ann", "right")]


def test_refresh_loses_nothing(files, serve_here, sit_down):
    """A refresh keeps the answers, the question, its sides and the assessor."""
    ann = sit_down(serve_here(files)).sign_in("Ann")
    ann.press("1")
    before = ann.page.inner_text("main")
    ann.page.reload()
    assert ann.page.inner_text("main") == before
    assert ann.progress == "1 of 6 judged"
    ann.press("2")
    assert judged(files) == [("Ann", "left"), ("Ann", "same")]


def test_kill_loses_nothing(files, serve, sit_down):
    """After the server was killed and started again, the open page goes on where it was."""
    server = serve(files)
    ann = sit_down(server.url).sign_in("Ann")
    ann.press("1")
    question = ann.page.inner_text("h1")
    ann.page.wait_for_load_state("networkidle")
    server.stop(signal.SIGKILL)
    serve(files, port=server.port)
    assert judged(files) == [("Ann", "left")]
    assert ann.page.inner_text("h1") == question
    ann.press("4")
    assert ann.progress == "2 of 6 judged"
    assert judged(files) == [("Ann", "left"), ("Ann", "right")]
    # The kill resets the connections that the browser held open; scripts must still be without error.
    ann.errors = [one for one in ann.errors if "net::ERR_CONNECTION_RESET" not in one]


def test_two_assessors(files, serve_here, sit_down):
    """Two people at once each have their own progress, answers and undo."""
    url = serve_here(files)
    ann, bob = sit_down(url).sign_in("Ann"), sit_down(url).sign_in("Bob")
    for _ in range(2):
        ann.press("1")
        bob.press("3")
    ann.press("u")
    assert (ann.progress, bob.progress) == ("1 of 6 judged", "2 of 6 judged")
    assert sorted(judged(files)) == [("Ann", "left"), ("Bob", "both_bad"), ("Bob", "both_bad")]


def test_hostile_texts_stay_text(files, serve_here, sit_down):
    """Scripts in titles, snippets, addresses and guidelines are seen, and none of them runs."""
    ann = sit_down(serve_here(files)).sign_in("Ann")
    seen = 0
    for _ in range(files.n):
        seen += ann.page.get_by_text("<script>window.taken", exact=False).count()
        assert ann.page.evaluate("window.taken") is None
        assert ann.page.locator("main img, a[href^=javascript]").count() == 0
        for link in ann.page.locator("main a, aside a").all():
            assert re.match("https://", link.get_attribute("href"))
            assert link.get_attribute("target") == "_blank"
            assert "noopener" in link.get_attribute("rel")
        ann.press("2")
    assert seen > files.n


def test_without_scripts(files, serve_here, sit_down):
    """With JavaScript switched off the forms do the same: answer, reason, undo, leave."""
    ann = sit_down(serve_here(files), java_script_enabled=False)
    ann.page.goto(ann.url)
    ann.page.fill("#name", "Ann")
    ann.follow("text=Begin")
    ann.follow("button.choice.left")
    ann.page.fill("#reason", "why")
    ann.follow("button.choice.right")
    ann.follow("#undo button")
    assert ann.page.input_value("#reason") == "why"
    ann.follow("button.choice.same")
    assert ann.progress == "2 of 6 judged"
    assert judged(files) == [("Ann", "left"), ("Ann", "same")]
    ann.follow("text=Not you?")
    assert ann.page.locator("#name").count() == 1


def test_a_double_press_answers_once(files, serve_here, sit_down):
    """A key pressed twice in a hurry, or held, does not answer the next question unseen."""
    ann = sit_down(serve_here(files)).sign_in("Ann")
    ann.page.wait_for_timeout(350)
    with ann.page.expect_navigation():
        ann.page.keyboard.press("1")
        ann.page.keyboard.press("1")
    ann.page.keyboard.press("1")
    ann.page.wait_for_timeout(200)
    assert judged(files) == [("Ann", "left")]
    ann.press("1")
    assert len(judged(files)) == 2


def test_shortcuts_can_be_switched_off(files, serve_here, sit_down):
    """Whoever needs the keys for something else can switch them off, for later pages too."""
    ann = sit_down(serve_here(files)).sign_in("Ann")
    ann.page.uncheck("#shortcuts")
    ann.page.reload()
    ann.page.wait_for_timeout(350)
    ann.page.keyboard.press("1")
    ann.page.wait_for_timeout(300)
    assert judged(files) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_fits_the_screen(files, serve_here, sit_down, scheme, width):
    """Wide or narrow, light or dark: nothing overflows sideways, and the answers are in view."""
    window = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    ann = sit_down(serve_here(files), **window).sign_in("Ann")
    assert ann.page.evaluate("document.documentElement.scrollWidth") <= width
    for choice in ann.page.locator("button.choice").all():
        box = choice.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width  # noqa: PT018
        assert box["y"] + box["height"] <= 800
        assert box["height"] >= 40
    assert ann.page.inner_text("aside summary") == "Guidelines"


def test_labels_and_announcement(files, serve_here, sit_down):
    """Every field and button has a name, the page one h1, and the progress is announced."""
    ann = sit_down(serve_here(files)).sign_in("Ann")
    ann.press("1")
    ann.page.get_by_role("status").get_by_text("Saved. 1 of 6 judged.").wait_for(state="attached")
    assert ann.page.locator("h1").count() == 1
    assert ann.page.get_attribute("html", "lang") == "en"
    for name in ("Left better", "Same", "Both bad", "Right better", "Skip", "Undo", "Not you?"):
        assert ann.page.get_by_role("button", name=name, exact=True).count() == 1
    assert ann.page.get_by_role("textbox", name="Reason").count() == 1
    assert ann.page.get_by_role("progressbar", name="1 of 6 judged").count() == 1
    assert ann.page.get_by_role("list").count() >= 2
    for name in ("Left", "Right"):
        assert ann.page.get_by_role("region", name=name, exact=True).count() == 1


def colours(scheme):
    """The colours of a scheme by their names, as in the style sheet."""
    light, dark = re.findall(r":root \{(.*?)\n *\}", (STATIC / "judge.css").read_text(), re.DOTALL)[
        :2
    ]
    found = dict(re.findall(r"--([\w-]+): (#\w{6})", light))
    return found if scheme == "light" else found | dict(re.findall(r"--([\w-]+): (#\w{6})", dark))


def contrast(one, two):
    """The contrast ratio of WCAG 2."""

    def luminance(colour):
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(scheme):
    """Text has a contrast of 4.5 or more on what it stands on, fields and focus of 3 or more."""
    c = colours(scheme)
    for text in ("text", "muted", "link", "accent", "problem", "warm"):
        assert contrast(c[text], c["surface"]) >= 4.5, text
    for text in ("text", "muted", "link", "problem"):
        assert contrast(c[text], c["page"]) >= 4.5, text
    for text in ("text", "muted", "link", "accent"):
        assert contrast(c[text], c["accent-soft"]) >= 4.5, text
    assert contrast(c["accent-text"], c["accent"]) >= 4.5
    assert contrast(c["warm"], c["warm-soft"]) >= 4.5
    for edge in ("field", "focus"):
        assert contrast(c[edge], c["surface"]) >= 3, edge
