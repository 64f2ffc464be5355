"""A run as a page in the browser: a small server on this machine, or one file that works offline."""

from __future__ import annotations

from gagar_env.view.export import export_page as export_page
from gagar_env.view.runs import open_runs as open_runs
from gagar_env.view.server import make_server as make_server
from gagar_env.view.site import Site as Site
