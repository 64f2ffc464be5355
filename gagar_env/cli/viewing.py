"""The command `gagar view`: a run as a page in the browser, or as one file."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gagar_env.cli.options import finite
from gagar_env.errors import GagarError

if TYPE_CHECKING:
    from gagar_env.view import Site

DEFAULT_PORT = 8420
DEFAULT_MB = 20.0


def view(
    run: Annotated[Path, typer.Argument(help="What `gagar run --out` wrote, or a folder of several.")],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="On this machine's own address; 0 takes a free one.")
    ] = DEFAULT_PORT,
    static: Annotated[Path | None, typer.Option(help="Write one HTML file that works offline, and end.")] = None,
    most_mb: Annotated[
        float,
        typer.Option(
            "--max-mb",
            min=0.1,
            callback=finite,
            help="For --static: megabytes of data; the page says what is left out.",
        ),
    ] = DEFAULT_MB,
    open_it: Annotated[bool, typer.Option("--open", help="Open a browser.")] = False,
) -> None:
    """Look at a run in the browser: curves, and groups side by side."""
    from gagar_env.view import Site, open_runs

    site = Site(open_runs(run))
    if static is None:
        _serve(site, port, open_it=open_it)
    else:
        _write(site, static, most_mb)


def _serve(site: Site, port: int, *, open_it: bool) -> None:
    import webbrowser

    from gagar_env.cli.output import counted
    from gagar_env.view import make_server

    with make_server(site, port) as server, contextlib.suppress(KeyboardInterrupt):
        site.start_reading()
        _say(f"{counted(len(site.runs), 'run')} at {server.url} (Ctrl-C ends)")
        if open_it:
            webbrowser.open(server.url)
        server.serve_forever()


def _write(site: Site, out: Path, most_mb: float) -> None:
    from gagar_env.view import export_page

    if out.is_dir():
        raise GagarError(f"--static {out} is a folder: name a file, {out / 'run.html'} say")
    left = export_page(site, out, most_mb=most_mb)
    _say(f"written to {out}, {out.stat().st_size / 1_000_000:.1f} MB")
    if left:
        _say(f"left out, for --max-mb {most_mb:g}: {', '.join(f'{number} {what}' for what, number in left.items())}")


def _say(line: str) -> None:
    from gagar_env.cli.output import console

    console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.file.flush()  # who started it from a script waits for this line
