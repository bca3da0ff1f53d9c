"""The routes. Each view runs in a worker thread: the page goes on answering while a ledger is waited for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin.errors import HermesMemoryError, LedgerBusy, NotFound
from hermes_memory_plugin.web import facts, views
from hermes_memory_plugin.web.guard import Guard
from hermes_memory_plugin.web.page import NotThis, Page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from hermes_memory_plugin.memory import Memory

View = Callable[[Page], "Response"]
Act = Callable[[Page, dict[str, str]], "Response"]


def build(memory: Memory, *, token: str, port: int, owner: Owner | None = None) -> Starlette:
    """The page of one memory, behind its guard. `owner` is whose rows it begins with."""
    static = StaticFiles(directory=Path(__file__).parent / "static")
    app = Starlette(
        routes=[
            Route("/", _reading("overview", views.overview)),
            Route("/ask", _reading("ask", views.ask)),
            Route("/facts", _reading("facts", facts.facts)),
            Route("/fact", _reading("facts", facts.fact)),
            Route("/scenes", _reading("scenes", views.scenes)),
            Route("/reports", _reading("reports", views.reports)),
            Route("/trace", _reading("trace", views.trace)),
            Route("/injections", _reading("injections", views.injections)),
            Route("/trash", _reading("trash", facts.trash)),
            Route("/forget", _reading("facts", facts.forget)),
            Route("/forget", _writing("facts", facts.forget_now), methods=["POST"]),
            Route("/restore", _writing("trash", facts.restore_now), methods=["POST"]),
            Mount("/static", static),
        ],
        middleware=[Middleware(Guard, token=token, port=port)],
    )
    app.state.memory = memory
    app.state.owner = owner or Owner()
    return app


def _reading(name: str, view: View) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        return _made(request, name, view)

    return endpoint


def _writing(name: str, act: Act) -> Callable[[Request], object]:
    async def endpoint(request: Request) -> Response:
        async with request.form(max_files=0, max_fields=20) as form:
            given = {key: value for key, value in form.items() if isinstance(value, str)}
        return await run_in_threadpool(_made, request, name, lambda page: act(page, given))

    return endpoint


def _made(request: Request, name: str, view: View) -> Response:
    """The view, or a page that says what went wrong."""
    try:
        page = Page(request, name)
    except NotThis as error:
        return PlainTextResponse(f"{error}\n", 400)
    try:
        return view(page)
    except HermesMemoryError as error:
        code = 404 if isinstance(error, NotFound) else 503 if isinstance(error, LedgerBusy) else 400
        return page.answer("wrong.html", code, said=str(error))
