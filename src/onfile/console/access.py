"""Who may talk to the console: the right host, the token, and no page of another site."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
STATIC = "/static/"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not `no-referrer`: browsers would then send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

NOT_THIS_HOST = "This server answers only under the address it was started with."
NO_TOKEN = "Open the address that onfile serve printed: it carries the token that this page asks for."  # noqa: S105  # words for a person
OTHER_SITE = "This request came from another site, so nothing was done."

Refuse = Callable[[Request, int, str], Response]


class Doorkeeper:
    """ASGI middleware: lets a request through to the pages or refuses it, and sets the security headers."""

    def __init__(self, app: ASGIApp, *, token: str | None, hosts: set[str] | None, refuse: Refuse) -> None:
        """Guard `app`.

        Args:
            app: What to guard.
            token: What the first request must carry; None lets everyone on this machine in.
            hosts: The names under which the server answers, shared so that it may grow before the
                first request. A `*` in it stands for any name.
            refuse: Renders a refusal from the request, a status and words.
        """
        self._app = app
        self._token = token
        self._hosts = LOCAL_HOSTS if hosts is None else hosts
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            # Only the start and stop of the server: there is no websocket behind this door.
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        answer = self._stop(request)
        sender = _with_headers(send, cacheable=request.url.path.startswith(STATIC))
        await (answer or self._app)(scope, receive, sender)

    def _stop(self, request: Request) -> Response | None:
        """Answer the refusal or redirection that the request ends with, or None to let it through."""
        host = _host_name(request.headers)
        if host not in self._hosts and "*" not in self._hosts:
            # A page elsewhere whose name was pointed at 127.0.0.1 (DNS rebinding) says its own name here.
            return self._refuse(request, 400, NOT_THIS_HOST)
        if request.url.path.startswith(STATIC):
            return None
        if self._token is not None and "token" in request.query_params and request.method == "GET":
            return self._sign_in(request, self._token)
        if self._token is not None and self._has_bearer(request, self._token):
            return None
        if self._token is not None and not self._has_cookie(request, self._token):
            return self._refuse(request, 401, NO_TOKEN)
        if request.method not in _SAFE and not _own_origin(request.headers, cookie=self._token is not None):
            return self._refuse(request, 403, OTHER_SITE)
        return None

    def _sign_in(self, request: Request, token: str) -> Response:
        if not _same(request.query_params["token"], token):
            return self._refuse(request, 401, NO_TOKEN)
        left = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
        # At once away from the address with the token in it: addresses end up in histories. One slash
        # in front, because `//elsewhere` would be another site.
        path = "/" + request.url.path.lstrip("/\\")
        answer = RedirectResponse(path + ("?" + urlencode(left) if left else ""), status_code=303)
        answer.set_cookie(_cookie_name(request), _cookie_value(token), httponly=True, samesite="strict", path="/")
        return answer

    def _has_bearer(self, request: Request, token: str) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and _same(given.strip(), token)

    def _has_cookie(self, request: Request, token: str) -> bool:
        return _same(request.cookies.get(_cookie_name(request), ""), _cookie_value(token))


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode("utf-8", "replace"))


def _cookie_name(request: Request) -> str:
    # Browsers share cookies between ports; two consoles on one machine must not sign each other out.
    return f"onfile_{_port(request.headers)}"


def _cookie_value(token: str) -> str:
    # Not the token itself: the cookie outlives the page, and the token also opens the API.
    return hmac.new(token.encode("utf-8", "replace"), b"onfile console cookie", hashlib.sha256).hexdigest()


def _host_name(headers: Headers) -> str | None:
    try:
        return urlsplit(f"//{headers.get('host', '')}").hostname
    except ValueError:
        return None


def _port(headers: Headers) -> int:
    try:
        return urlsplit(f"//{headers.get('host', '')}").port or 80
    except ValueError:
        return 80


def _own_origin(headers: Headers, *, cookie: bool) -> bool:
    """Tell whether a request that changes something comes from a page of ours.

    `SameSite` alone is not enough: every port of this machine is the same site.
    """
    origin = headers.get("origin")
    if origin is not None:
        return urlsplit(origin).netloc == headers.get("host")
    fetched_by = headers.get("sec-fetch-site")
    if fetched_by is not None:
        return fetched_by == "same-origin"
    # Every browser sends one of the two; what sends neither is a script, which has no cookie to steal.
    return not cookie


def _with_headers(send: Send, *, cacheable: bool) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            headers["Cache-Control"] = "no-cache" if cacheable else "no-store"
        await send(message)

    return send_with_headers
