"""The judging pages as an ASGI application."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from unskew.errors import StoreError, UsageError
from unskew.online.judging.answers import Answer
from unskew.online.judging.database import Database, Given
from unskew.online.judging.guard import Guard, read_form
from unskew.online.judging.questions import Desk
from unskew.online.judging.sessions import Session, Sessions, clean_name
from unskew.online.judging.templates import ASSETS, render

REASON_LENGTH = 2000
COOKIE_SECONDS = 90 * 24 * 3600
# Each answer with its name and the key that gives it, in the order of the buttons.
CHOICES = (
    (Answer.LEFT, "Left better", "1"),
    (Answer.SAME, "Same", "2"),
    (Answer.BOTH_BAD, "Both bad", "3"),
    (Answer.RIGHT, "Right better", "4"),
    (Answer.SKIP, "Skip", "5"),
)
NAMES = {answer: name for answer, name, _ in CHOICES}


def make_app(
    desk: Desk,
    database: Database,
    *,
    guidelines: str = "",
    assessors: Sequence[str] = (),
    hosts: Collection[str] = ("localhost",),
) -> Guard:
    """The pages over a database.

    ``guidelines`` is HTML, ``assessors`` the only names that may judge (all, if empty), and
    ``hosts`` the names by which browsers may call this server, beside addresses in numbers.
    """
    pages = _Pages(desk, database, guidelines, tuple(clean_name(name) for name in assessors))
    app = Starlette(
        routes=[
            Route("/", pages.start),
            Route("/name", pages.sign_in, methods=["POST"]),
            Route("/leave", pages.leave, methods=["POST"]),
            Route("/judge", pages.judge),
            Route("/answer", pages.answer, methods=["POST"]),
            Route("/undo", pages.undo, methods=["POST"]),
            Route("/revisit", pages.revisit, methods=["POST"]),
            Route("/static/{name}", pages.asset),
        ],
        exception_handlers={HTTPException: _refused, StoreError: _unsaved, Exception: _failed},
    )
    return Guard(app, hosts)


class _Pages:
    """One method for each address."""

    def __init__(
        self, desk: Desk, database: Database, guidelines: str, assessors: tuple[str, ...]
    ) -> None:
        self.desk = desk
        self.database = database
        self.guidelines = guidelines
        self.assessors = assessors
        self.sessions = Sessions(database.secret)

    async def start(self, request: Request) -> Response:
        """The first page: what to do, and who is it."""
        session = self._session(request)
        if session is not None and session.name is not None:
            return RedirectResponse("/judge", 303)
        session = session or self.sessions.new()
        return self._with_cookie(HTMLResponse(self._start_page(session)), session)

    async def sign_in(self, request: Request) -> Response:
        """Take a name and begin a session of that assessor."""
        session, form = await self._form(request)
        try:
            name = clean_name(form.get("name", ""))
            if self.assessors and name not in self.assessors:
                raise UsageError(f"{name} is not among the assessors of this study")
        except UsageError as error:
            return HTMLResponse(self._start_page(session, str(error)), 400)
        await run_in_threadpool(self.database.assessor, name)
        # A new session: a page that another assessor left open in this browser fits it no more.
        return self._with_cookie(RedirectResponse("/judge", 303), self.sessions.new(name))

    async def leave(self, request: Request) -> Response:
        """End the session."""
        await self._form(request)
        return self._with_cookie(RedirectResponse("/", 303), self.sessions.new())

    async def judge(self, request: Request) -> Response:
        """The next question, or what was done when there is none."""
        session = self._session(request)
        if session is None or session.name is None:
            return RedirectResponse("/", 303)
        preferred = _whole_number(request.query_params.get("question", "0"))
        return HTMLResponse(await run_in_threadpool(self._question_page, session, preferred))

    async def answer(self, request: Request) -> Response:
        """Write an answer to disk, then lead to the next question."""
        session, form = await self._form(request)
        name = _assessor(session)
        number = _whole_number(form.get("question", ""))
        if number not in self.desk.questions:
            raise HTTPException(400, "There is no such question.")
        if form.get("answer") not in set(Answer):
            raise HTTPException(400, "There is no such answer.")
        answer = Answer(form["answer"])
        kept = await run_in_threadpool(
            self._record, name, number, answer, _clean_reason(form.get("reason", ""))
        )
        if kept.answer is not answer:
            raise HTTPException(
                409,
                f"You have answered this question already, with “{NAMES[kept.answer]}”, and that "
                "answer was kept. To change it, go on and undo it.",
            )
        return RedirectResponse("/judge", 303)

    async def undo(self, request: Request) -> Response:
        """Take an answer back and ask its question again."""
        session, form = await self._form(request)
        name = _assessor(session)
        number = _whole_number(form.get("given", ""))
        assessor = await run_in_threadpool(self.database.assessor, name)
        question = await run_in_threadpool(self.database.undo, assessor, number)
        return RedirectResponse(
            "/judge" if question is None else f"/judge?question={question}", 303
        )

    async def revisit(self, request: Request) -> Response:
        """Ask the skipped questions again."""
        session, _ = await self._form(request)
        assessor = await run_in_threadpool(self.database.assessor, _assessor(session))
        await run_in_threadpool(self.database.revisit, assessor)
        return RedirectResponse("/judge", 303)

    async def asset(self, request: Request) -> Response:
        """A file of the pages."""
        name = request.path_params["name"]
        if name not in ASSETS:
            raise HTTPException(404, "There is nothing at this address.")
        content, kind = ASSETS[name]
        return Response(content, media_type=kind)

    def _session(self, request: Request) -> Session | None:
        session = self.sessions.read(request.cookies.get(self.sessions.cookie))
        if session is not None and self.assessors and session.name not in self.assessors:
            return Session(session.id)
        return session

    async def _form(self, request: Request) -> tuple[Session, dict[str, str]]:
        """The session and its form; 403 if the form was made for another session."""
        form = await read_form(request)
        session = self._session(request)
        if session is None or not self.sessions.fits(session, form.get("token", "")):
            raise HTTPException(403, "This page is out of date. Nothing was saved from it.")
        return session, form

    def _with_cookie(self, response: Response, session: Session) -> Response:
        response.set_cookie(
            self.sessions.cookie,
            self.sessions.write(session),
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="lax",
        )
        return response

    def _record(self, name: str, number: int, answer: Answer, reason: str) -> Given:
        return self.database.record(
            self.database.assessor(name),
            number,
            answer,
            a_was_left=self.desk.a_is_left(name, number),
            reason=reason,
        )

    def _start_page(self, session: Session, problem: str = "") -> str:
        return render(
            "start.html",
            token=self.sessions.token(session),
            guidelines=self.guidelines,
            assessors=self.assessors,
            choices=CHOICES,
            total=len(self.desk.questions),
            problem=problem,
        )

    def _question_page(self, session: Session, preferred: int) -> str:
        name = _assessor(session)
        assessor = self.database.assessor(name)
        given = self.database.given(assessor)
        number = self.desk.next(name, given, preferred)
        values: dict[str, Any] = {
            "token": self.sessions.token(session),
            "guidelines": self.guidelines,
            "assessor": name,
            "progress": self.desk.progress(given),
            "choices": CHOICES,
            "last": given[-1] if given else None,
            "last_query": self._query_of(given[-1]) if given else "",
            "names": NAMES,
        }
        if number is None:
            counts = {answer: sum(g.answer is answer for g in given) for answer in Answer}
            return render("done.html", counts=counts, **values)
        undone = [g for g in self.database.given(assessor, undone=True) if g.question == number]
        return render(
            "question.html",
            number=number,
            query=self.desk.questions[number].query,
            sides=self.desk.sides(name, number),
            earlier=undone[-1] if undone else None,
            reason_length=REASON_LENGTH,
            **values,
        )

    def _query_of(self, given: Given) -> str:
        question = self.desk.questions.get(given.question)
        return "" if question is None else question.query.text or question.query.query


def _assessor(session: Session) -> str:
    if session.name is None:
        raise HTTPException(403, "Say who you are first. Nothing was saved.")
    return session.name


def _whole_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise HTTPException(400, "The request names something that is not there.")
    return int(text)


def _clean_reason(typed: str) -> str:
    lines = typed.replace("\r\n", "\n").replace("\r", "\n").strip()
    if len(lines) > REASON_LENGTH:
        raise HTTPException(400, f"A reason may have {REASON_LENGTH:,} characters.")
    return "".join(c for c in lines if c in "\n\t" or c.isprintable() or ord(c) >= 160)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    page = render("error.html", status=error.status_code, problem=error.detail)
    return HTMLResponse(page, error.status_code, headers=error.headers)


async def _unsaved(request: Request, error: Exception) -> Response:
    problem = (
        "The database cannot be used at the moment, so nothing was saved. Go back and try again."
    )
    return HTMLResponse(render("error.html", status=503, problem=problem), 503)


async def _failed(request: Request, error: Exception) -> Response:
    problem = "Something went wrong here, so nothing was saved. Go back and try again."
    return HTMLResponse(render("error.html", status=500, problem=problem), 500)
