"""What every view needs of a request: whose memory, in which language, and how a page is made of a template."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.responses import HTMLResponse, RedirectResponse

from hermes_memory_hookspecs import Owner
from hermes_memory_plugin.cli.output import shown
from hermes_memory_plugin.errors import HermesMemoryError
from hermes_memory_plugin.web.words import LANGUAGES, chosen, words

if TYPE_CHECKING:
    from jinja2 import Environment
    from starlette.requests import Request

    from hermes_memory_plugin.memory import Memory

VIEWS = ("overview", "ask", "facts", "scenes", "reports", "trace", "injections", "trash")
FOLDER = Path(__file__).parent


class NotThis(HermesMemoryError):
    """What the address asks for cannot be done here."""


@cache
def templates() -> Environment:
    """The templates; everything put into them is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["shown"] = shown
    return made


class Page:
    """One request, as the views see it."""

    def __init__(self, request: Request, view: str) -> None:
        self.request = request
        self.view = view
        self.memory: Memory = request.app.state.memory
        asked = request.query_params
        self.language = chosen(asked.get("lang", ""), request.headers.get("accept-language", ""))
        self.owner_key = asked.get("owner", "") or request.app.state.owner.key
        try:
            self.owner = Owner.parse(self.owner_key)
        except ValueError as error:
            self.owner_key, self.owner = "local", Owner()
            raise NotThis(str(error)) from None

    def asked(self, name: str) -> str:
        """What the address says under this name."""
        return str(self.request.query_params.get(name, "")).strip()[:2_000]

    def number(self, name: str, most: int = 1_000_000) -> int:
        """A whole number of the address; 0 for what is none."""
        text = self.asked(name)
        return min(int(text), most) if text.isascii() and text.isdecimal() else 0

    def url(self, path: str, **query: object) -> str:
        """An address of ours that stays with this owner and language."""
        kept: dict[str, object] = {
            name: self.request.query_params[name]
            for name in ("owner", "lang")
            if self.request.query_params.get(name)
        }
        pairs = {name: value for name, value in (kept | query).items() if value not in ("", None)}
        return path + (f"?{urlencode(pairs)}" if pairs else "")

    def answer(self, template: str, code: int = 200, **data: Any) -> HTMLResponse:
        """The page."""
        said: Mapping[str, str] = words(self.language)
        others = {one: self._here(lang=one) for one in LANGUAGES}
        text = (
            templates()
            .get_template(template)
            .render(
                t=said,
                lang=self.language,
                languages=LANGUAGES,
                others=others,
                view=self.view,
                views=VIEWS,
                url=self.url,
                owner=self.owner_key,
                owners=self._owners(),
                asked=self.asked,
                **data,
            )
        )
        return HTMLResponse(text, code)

    def go(self, path: str, **query: object) -> RedirectResponse:
        """On to another page after something was done."""
        return RedirectResponse(self.url(path, **query), 303)

    def _owners(self) -> list[str]:
        from hermes_memory_plugin.cli.views import owner_rows

        return list(dict.fromkeys(("local", "shared", *owner_rows(self.memory), "any", self.owner_key)))

    def _here(self, **query: str) -> str:
        pairs = {name: value for name, value in self.request.query_params.items() if value} | query
        return f"{self.request.url.path}?{urlencode(pairs)}"
