"""What every request passes first: the right host, the right origin, and strict headers back."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

BODY_BYTES = 64 * 1024
FIELDS = 10
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Guard:
    """An application behind checks of Host and Origin, with security headers on every response.

    A page of another site can make a browser send requests here, by a form or by pointing its own
    name at this address. The first has a foreign Origin, the second a foreign Host. An address in
    numbers cannot be pointed elsewhere and is always accepted as Host.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self.app = app
        self.hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refusal(scope)
        answer = self.app if refusal is None else refusal
        await answer(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._knows(host):
            return PlainTextResponse("This server does not answer to that host name.\n", 400)
        if scope["method"] in {"GET", "HEAD"}:
            return None
        if headers.get("origin") not in {f"http://{host}", f"https://{host}"}:
            return PlainTextResponse("This form does not come from this server's pages.\n", 403)
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return PlainTextResponse("This form does not come from this server's pages.\n", 403)
        return None

    def _knows(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            return False
        if name is None or "@" in host or "/" in host:
            return False
        if name in self.hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form, each at most once; a malformed one is a 4xx error."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "A form of another type than this page sends.")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES:
            raise HTTPException(413, f"A form may have {BODY_BYTES:,} bytes.")
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=FIELDS,
        )
    except ValueError as error:
        raise HTTPException(400, "The form cannot be read.") from error
    if len(dict(pairs)) != len(pairs):
        raise HTTPException(400, "The form has a field twice.")
    return dict(pairs)
