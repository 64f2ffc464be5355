"""The server of `gagar view`: this machine only, reading only."""

from __future__ import annotations

import errno
import gzip
import logging
import re
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from gagar_env.errors import GagarError
from gagar_env.view.pages import MODULES, SERVED_POLICY, STYLES, asset, served_page
from gagar_env.view.plain import to_json
from gagar_env.view.site import Site

logger = logging.getLogger(__name__)

ADDRESS = "127.0.0.1"
_OWN_NAMES = ("127.0.0.1", "localhost", "[::1]")
_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?")
_TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_HEADERS = {
    "Content-Security-Policy": SERVED_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_WORTH_PACKING = 1_400


class ViewServer(ThreadingHTTPServer):
    """Answers from a `Site`.

    Args:
        site: What is shown.
        port: To listen on; 0 takes a free one.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, site: Site, port: int) -> None:
        self.site = site
        super().__init__((ADDRESS, port), _Handler)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{ADDRESS}:{self.server_address[1]}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up is nothing to report."""
        logger.debug("a request broke off", exc_info=True)

    def server_close(self) -> None:
        """Stop reading as well."""
        self.site.stop()
        super().server_close()


def make_server(site: Site, port: int = 0) -> ViewServer:
    """A server that listens on this machine's own address; `serve_forever` answers.

    Raises:
        GagarError: If the port is taken, or may not be used.
    """
    try:
        return ViewServer(site, port)
    except OverflowError as error:
        raise GagarError(f"--port {port}: ports go from 0 to 65535") from error
    except OSError as error:
        why = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
        raise GagarError(f"--port {port} {why}: choose another, or 0 for a free one") from error


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    protocol_version = "HTTP/1.1"
    server_version = "gagar"
    sys_version = ""
    timeout = 60

    def do_GET(self) -> None:
        """The page, its parts, or data."""
        if _HOST.fullmatch((self.headers.get("Host") or "").lower()) is None:
            # a name of somebody else that leads here: their page would read what is ours
            self._refuse(HTTPStatus.FORBIDDEN, f"this server answers to {', '.join(_OWN_NAMES)} only")
            return
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            self._refuse(HTTPStatus.FORBIDDEN, "this server answers its own page only")
            return
        path = urlsplit(self.path).path
        if path == "/":
            self._send(served_page(), "text/html; charset=utf-8")
        elif path.startswith("/static/") and path[8:] in (*MODULES, *STYLES, "icon.svg"):
            kind = _TYPES[path.rpartition(".")[2]]
            self._send(asset(path[8:]), f"{kind}; charset=utf-8")
        elif path.startswith("/api/"):
            self._answer(path[5:])
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")

    def _answer(self, address: str) -> None:
        try:
            found = self.server.site.get(address)
            body = b"" if found is None else to_json(found)
        except Exception:  # one odd group shall not cost the others
            logger.exception("%s cannot be shown", address)
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "this cannot be shown; the log says why")
            return
        if found is None:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such thing")
        else:
            self._send(body, "application/json")

    def _only_get(self) -> None:
        self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "this server only answers GET")

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = _only_get

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True  # a body that was not read is not the next request
        self._send(f"{why}\n".encode(), "text/plain; charset=utf-8", status)

    def _send(self, body: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        packed = len(body) > _WORTH_PACKING and "gzip" in self.headers.get("Accept-Encoding", "")
        data = gzip.compress(body, 3) if packed else body
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET")
        if packed:
            self.send_header("Content-Encoding", "gzip")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests go to the log of this package, not to the terminal."""
        logger.debug("%s", format % args)
