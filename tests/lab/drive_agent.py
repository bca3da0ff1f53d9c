"""Runs turns on a real in-process AIAgent; started by hermes_lab.py under the Python that has hermes-agent.

Reads one JSON object from the file named by its only argument and prints one JSON object after MARK:

    in   {"turns": [TURN, ...], "toolsets": [NAME, ...] or null (every toolset of the config)}
         TURN = TEXT or {"text": TEXT,
                         "new": BOOL            a new session
                         "fresh": BOOL          a new agent for the same session, as a gateway without its cache
                         "agent": {...}         more keyword arguments of AIAgent (with new or fresh)
                         "chat": {...}          what gateway.session_context.set_session_vars takes
                         "compress": BOOL       a compaction before the turn
                         "home": PATH           the Hermes home of this turn, as a multiplexing gateway sets it
                         "interrupt": SECONDS   interrupt the agent after that time
                         "finalize": BOOL       afterwards the session is over, as at /new or at the end of the CLI
                         "cron": {...}          instead of a turn: make a job with these values and run it
                         "wait": NAME           afterwards: until no thread has that name any more}
    out  {"turns": [{"response", "session_id", "error"}, ...], "messages": [...]}
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

MARK = "@@drive-agent@@"


def build_agent(
    toolsets: list[str] | None, session_db: Any, session_id: str | None, options: dict[str, Any]
) -> Any:
    from hermes_cli.config import load_config
    from hermes_cli.runtime_provider import resolve_runtime_provider
    from hermes_cli.tools_config import _get_platform_tools
    from run_agent import AIAgent

    config = load_config()
    model = config["model"]["default"]
    runtime = resolve_runtime_provider(target_model=model)
    if toolsets is None:
        toolsets = sorted(_get_platform_tools(config, "cli"))
    return AIAgent(
        **{
            "api_key": runtime.get("api_key"),
            "base_url": runtime.get("base_url"),
            "provider": runtime.get("provider"),
            "api_mode": runtime.get("api_mode"),
            "model": model,
            "enabled_toolsets": toolsets,
            "quiet_mode": True,
            "platform": "cli",
            "session_db": session_db,
            "session_id": session_id,
            **options,
        }
    )


class Driver:
    def __init__(self, spec: dict[str, Any]):
        from hermes_cli.plugins import discover_plugins
        from hermes_state import SessionDB

        discover_plugins()
        self.spec = spec
        self.session_db = SessionDB()
        self.agent: Any = None
        self.history: list[dict[str, Any]] = []

    def turn(self, turn: dict[str, Any]) -> dict[str, Any]:
        if turn.get("new"):
            self.agent, self.history = None, []
        if self.agent is None or turn.get("fresh"):
            session = self.agent.session_id if self.agent else None
            self.agent = build_agent(
                self.spec.get("toolsets"), self.session_db, session, turn.get("agent") or {}
            )
        if turn.get("compress"):
            self.history, _ = self.agent._compress_context(self.history, None, force=True)
        stop = None
        if turn.get("interrupt"):
            stop = threading.Timer(turn["interrupt"], self.agent.interrupt)
            stop.start()
        try:
            result = self.agent.run_conversation(turn["text"], conversation_history=self.history or None)
        except Exception as error:  # the caller wants to see it, whatever it is
            return {"error": f"{type(error).__name__}: {error}"}
        finally:
            if stop:
                stop.cancel()
        self.history = result["messages"]
        return {"response": result.get("final_response"), "session_id": self.agent.session_id}

    def step(self, turn: dict[str, Any]) -> dict[str, Any]:
        with ExitStack() as around:
            if turn.get("home"):
                from hermes_constants import reset_hermes_home_override, set_hermes_home_override

                around.callback(reset_hermes_home_override, set_hermes_home_override(turn["home"]))
            if turn.get("chat"):
                from gateway.session_context import clear_session_vars, set_session_vars

                around.callback(clear_session_vars, set_session_vars(**turn["chat"]))
            if turn.get("cron"):
                from cron.jobs import create_job
                from cron.scheduler import run_job

                return {"response": str(run_job(create_job(**turn["cron"]))[2])}
            done = self.turn(turn)
            if turn.get("finalize"):
                from hermes_cli.plugins import invoke_hook

                invoke_hook(
                    "on_session_finalize", session_id=self.agent.session_id, platform="cli", reason="shutdown"
                )
        while any(thread.name == turn.get("wait") for thread in threading.enumerate()):
            time.sleep(0.05)
        return done

    def run(self) -> dict[str, Any]:
        done = []
        for turn in self.spec["turns"]:
            spec = {"text": turn} if isinstance(turn, str) else turn
            # A thread of its own for each turn: a gateway's pool never promises the same one again.
            with ThreadPoolExecutor(1) as thread:
                done.append(thread.submit(self.step, spec).result())
        return {"turns": done, "messages": self.history}


def main() -> None:
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    out = os.dup(1)  # tools of Hermes put other things in the place of sys.stdout, for the whole process
    result = Driver(spec).run()
    sys.stdout.flush()
    with os.fdopen(out, "w", encoding="utf-8") as stream:
        stream.write(f"\n{MARK}\n{json.dumps(result, ensure_ascii=False, default=str)}\n")


if __name__ == "__main__":
    main()
