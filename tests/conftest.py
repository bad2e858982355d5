"""What tests share: the real data, a browser, and helpers that every test of a folder can import."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# A busy machine is no fault of the code: no test fails for the time that an example takes.
settings.register_profile("unskew", deadline=None)
settings.load_profile("unskew")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real ranking data; a test that needs it skips where it is absent."""
    root = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("UNSKEW_DATA", root.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("real data is absent: set UNSKEW_DATA to its folder")
    return folder


@pytest.fixture(scope="session")
def expedia(real_data: Path) -> Any:
    """All searches of Expedia; ids, bookings and the mark of shuffled searches are no features."""
    import duckdb

    import unskew

    table = duckdb.sql(
        f"""SELECT * EXCLUDE (date_time, site_id, visitor_location_country_id, prop_country_id,
        prop_id, srch_id, srch_destination_id, random_bool, click_bool, gross_bookings_usd,
        booking_bool, source, position), srch_id AS session, srch_id AS query, prop_id AS doc,
        position, click_bool AS click, random_bool AS arm
        FROM read_csv('{real_data / "expedia" / "searches.csv.gz"}')"""
    ).to_arrow_table()
    return unskew.read_log(table, context="arm", progress=False)


@pytest.fixture(scope="session")
def s3() -> Iterator[Any]:
    """A real S3 server on the loopback address, with an empty bucket."""
    from s3_server import s3_server

    with s3_server() as server:
        yield server


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """One thread: small logs gain nothing from threads, and lose much on a busy machine."""
    from unskew.threads import threads

    with threads(1):
        yield


@pytest.fixture
def eager_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads, however few cores there are and however little there is to do."""
    monkeypatch.setattr("unskew.threads._WORTH_A_THREAD", 1)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A headless Chromium; the tests skip where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("no browser: install chromium from the system's packages")
    flags = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
    ]  # fmt: skip
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        yield browser
        browser.close()
