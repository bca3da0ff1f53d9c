"""`search_reports`: passages of the research reports on this machine, to be cited by broker, date and page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes_memory_plugin.tools.base import Caller, Refused, Tool, plain, text

LIMIT, MOST = 5, 20

SCHEMA: dict[str, Any] = {
    "name": "search_reports",
    "description": (
        "Searches the user's own library of brokers' research reports: views, ratings, target prices, forecasts. "
        "Cite broker, date and page of what you use. Before the web."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "what to look for; 最新 or latest: the newest report first",
            },
            "code": {"type": "string", "description": "only reports on this company: ticker or name"},
            "broker": {"type": "string", "description": "only of this broker"},
            "since": {"type": "string", "description": "ISO date, included"},
            "until": {"type": "string", "description": "ISO date, included"},
            "industry": {"type": "string"},
            "limit": {"type": "integer", "description": f"passages (default {LIMIT}, at most {MOST})"},
        },
        "required": ["query"],
    },
}


def run(caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """One call of the tool."""
    query, code = text(arguments, "query", "q"), text(arguments, "code", "ticker", "symbol")
    if not query and not code:
        raise Refused("search_reports needs a query")
    memory = caller.memory()
    found = memory.search_reports(
        query,
        code or None,
        broker=text(arguments, "broker"),
        since=text(arguments, "since") or None,
        until=text(arguments, "until") or None,
        industry=text(arguments, "industry"),
        limit=_limit(arguments.get("limit")),
        owner=caller.session.owner,
    )
    if not found:
        return {
            "status": "nothing",
            "retry": False,
            "passages": [],
            "message": "No report in the library speaks of this.",
        }
    return {
        "status": "found",
        "passages": [
            {
                "id": one.id,
                "broker": plain(one.broker, 60),
                "title": plain(one.title, 120),
                **({"date": one.date.date().isoformat()} if one.date else {}),
                "page": one.page,
                "text": plain(one.text, len(one.text)),
            }
            for one in found
        ],
    }


def _limit(value: object) -> int:
    try:
        return max(1, min(MOST, int(str(value))))
    except ValueError:
        return LIMIT


TOOL = Tool("search_reports", SCHEMA, run)
