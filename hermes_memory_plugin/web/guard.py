"""Who may talk to the page: this machine, under its own name, with the token, from the page itself.

Host        a name that is not ours is DNS rebinding: another site's script would be same-origin with us
token       from the URL that was printed; it is changed for a cookie at once, so that no link or log carries it on
Origin      whatever changes something must come from a page of ours; a browser sends Origin with every POST
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    # No script at all, nothing from elsewhere, no frame around us.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_READING = ("GET", "HEAD")
_BODY = 1 << 16
"""Most bytes of a form."""


class Guard:
    """The ASGI layer in front of every route; what it refuses reaches no route."""

    def __init__(self, app: ASGIApp, *, token: str, port: int) -> None:
        self.app = app
        self.token = token
        self.port = port
        # A browser shares cookies between the ports of a host: two pages must not log each other out.
        self.cookie = f"hermes_memory_{port}"
        self.hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return

        async def hardened(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        await (refusal or self.app)(scope, receive, hardened)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if host not in self.hosts:
            return PlainTextResponse("This page answers to 127.0.0.1 only.\n", 421)
        reading = scope["method"] in _READING
        if not reading and headers.get("origin", "") != f"http://{host}":
            return PlainTextResponse("This did not come from the memory's own page.\n", 403)
        if not reading and not headers.get("content-length", "").isdecimal():
            return PlainTextResponse("The length of the form is missing.\n", 411)
        if not reading and int(headers["content-length"]) > _BODY:
            return PlainTextResponse("The form is too long.\n", 413)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = next((value for name, value in query if name == "token"), None)
        if reading and given is not None and self._ours(given):
            return self._welcome(scope, [(name, value) for name, value in query if name != "token"])
        if self._ours(cookie_parser(headers.get("cookie", "")).get(self.cookie, "")):
            return None
        return PlainTextResponse(
            "The token is missing or old: open the address that `hermes-memory web` printed.\n", 401
        )

    def _ours(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode())

    def _welcome(self, scope: Scope, query: list[tuple[str, str]]) -> Response:
        # Of the path only what follows the first slash: `//elsewhere` would be another site.
        path = "/" + scope["path"].lstrip("/\\")
        answer = RedirectResponse(path + (f"?{urlencode(query)}" if query else ""), 303)
        answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict", path="/")
        return answer
