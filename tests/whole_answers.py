"""A relay in front of an HTTP server on the loopback address that hands every answer on in one piece.

Azurite writes the head and the body of an answer apart. Azure's library now and then takes that for a
connection that was closed too soon, and tries again after many seconds.

    python whole_answers.py PORT PORT_OF_THE_SERVER
"""

from __future__ import annotations

import http.client
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Relay(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_port: int

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        there = http.client.HTTPConnection("127.0.0.1", self.server_port, timeout=60)
        there.request(self.command, self.path, body, dict(self.headers))
        answer = there.getresponse()
        content = answer.read()
        size = answer.headers["Content-Length"] if self.command == "HEAD" else len(content)
        head = [f"HTTP/1.1 {answer.status} {answer.reason}", f"Content-Length: {size or 0}"]
        head += [
            f"{name}: {value}"
            for name, value in answer.headers.items()
            if name.lower()
            not in {"content-length", "transfer-encoding", "connection", "keep-alive"}
        ]
        there.close()
        self.wfile.write("\r\n".join([*head, "", ""]).encode("latin-1") + content)

    do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = _pass_on  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing: tests are silent."""


if __name__ == "__main__":
    _Relay.server_port = int(sys.argv[2])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), _Relay).serve_forever()
