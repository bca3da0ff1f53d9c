"""web: the memory in a browser, on this machine alone."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress

import click

from hermes_memory_plugin.cli.app import State, common, verb_state
from hermes_memory_plugin.errors import HermesMemoryError


@click.command(short_help="See and steer the memory in a browser.")
@common
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    help="Where it listens on 127.0.0.1 (default: a free port).",
)
@click.option("--open", "open_", is_flag=True, help="Also open it in the browser.")
@verb_state
def web(state: State, port: int, open_: bool) -> None:
    """Serve the page to this machine until Ctrl-C. The first line is its address, with a token made for this run."""
    try:
        import uvicorn

        from hermes_memory_plugin.web.app import build
    except ImportError as missing:
        raise click.UsageError(
            f"the page needs {missing.name}: pip install 'hermes-memory-plugin[web]' (Hermes itself brings it)."
        ) from None
    home = state.home
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            raise click.UsageError(f"port {port} cannot be used ({error.strerror}): try another.") from None
        listener.listen(128)
        port = int(listener.getsockname()[1])
        token = secrets.token_urlsafe(24)
        address = f"http://127.0.0.1:{port}/?token={token}"
        with state.memory() as memory:
            with suppress(HermesMemoryError):  # the page itself says what is wrong
                memory.reader.warm()
            app = build(memory, token=token, port=port, owner=state.owner)
            state.show({"home": home, "url": address}, lambda out: out.print(address, soft_wrap=True))
            if open_:
                click.launch(address)
            config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
            uvicorn.Server(config).run(sockets=[listener])


COMMANDS = (web,)
