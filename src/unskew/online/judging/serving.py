"""The judging server: from two files of rankings to pages on a port."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from unskew.errors import MissingDependencyError, UsageError
from unskew.online.judging.database import Database, chosen_seed
from unskew.online.judging.items import Items, read_items
from unskew.online.judging.queries import read_queries
from unskew.online.judging.rankings import read_rankings
from unskew.online.judging.study import Study, make_study

PACKAGES = ("starlette", "uvicorn", "jinja2", "itsdangerous")


@dataclass(frozen=True)
class Settings:
    """What is judged, by whom, and where the pages are."""

    a: str
    b: str
    db: str
    queries: str | None = None
    items: str | None = None
    guidelines: str | None = None
    top: int = 5
    sample: int | None = None
    seed: int | None = None
    assessors: Sequence[str] = ()
    host: str = "127.0.0.1"
    port: int = 8765
    allow_hosts: Sequence[str] = ()


@dataclass(frozen=True)
class Opened:
    """A server that listens: where, and what it serves."""

    url: str
    is_local: bool
    study: Study
    unlinked: int


def serve(settings: Settings, started: Callable[[Opened], None] | None = None) -> None:
    """Serve the pages until interrupted; ``started`` is called when browsers can come."""
    _require_packages()
    import uvicorn

    from unskew.online.judging.app import make_app
    from unskew.online.judging.guidelines import read_guidelines
    from unskew.online.judging.questions import Desk

    guidelines = read_guidelines(settings.guidelines) if settings.guidelines else ""
    # Everything is read before the database is begun, so that a mistake leaves no file behind.
    seed = chosen_seed(settings.db, settings.seed)
    study, items = open_study(settings, seed)
    with _listen(settings.host, settings.port) as listening:
        database = Database(settings.db, seed=seed)
        try:
            app = make_app(
                Desk(database.begin(study), items, seed),
                database,
                guidelines=guidelines,
                assessors=settings.assessors,
                hosts=("localhost", socket.gethostname(), settings.host, *settings.allow_hosts),
            )
            if started is not None:
                started(_opened(settings.host, listening, study, items))
            config = uvicorn.Config(
                app, log_level="warning", access_log=False, server_header=False,
                proxy_headers=False, lifespan="off", timeout_graceful_shutdown=5,
            )  # fmt: skip
            uvicorn.Server(config).run(sockets=[listening])
        finally:
            database.close()


def open_study(settings: Settings, seed: int) -> tuple[Study, Items]:
    """The questions of the files, and the texts of the documents."""
    queries = None if settings.queries is None else read_queries(settings.queries)
    wanted = None if queries is None else [entry.query for entry in queries]
    a, b = read_rankings(settings.a, settings.b, top=settings.top, queries=wanted)
    study = make_study(a, b, top=settings.top, queries=queries, sample=settings.sample, seed=seed)
    items = Items({}) if settings.items is None else read_items(settings.items, study.shown())
    return study, items


def _require_packages() -> None:
    for package in PACKAGES:
        try:
            import_module(package)
        except ImportError as error:
            raise MissingDependencyError(package, "judge", "unskew judge serve") from error


def _listen(host: str, port: int) -> socket.socket:
    """A socket on the address, port 0 for any that is free; an address in use is told."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UsageError(f"--host {host!r} is no address of this machine: {error}") from error
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
        listening.listen(128)
    except (OSError, OverflowError) as error:
        listening.close()
        raise UsageError(
            f"the server cannot listen on {host}, port {port}: {error}. Remedy: another --port, or "
            "0 for any that is free"
        ) from error
    return listening


def _opened(host: str, listening: socket.socket, study: Study, items: Items) -> Opened:
    address, port = listening.getsockname()[:2]
    is_any = ipaddress.ip_address(address.partition("%")[0]).is_unspecified
    name = socket.gethostname() if is_any else f"[{host}]" if ":" in host else host
    unlinked = sum(item.address is not None and item.link is None for item in items.by_key.values())
    return Opened(
        url=f"http://{name}:{port}/",
        is_local=ipaddress.ip_address(address.partition("%")[0]).is_loopback,
        study=study,
        unlinked=unlinked,
    )
