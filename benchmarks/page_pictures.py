"""Take the pictures of pages for the docs with a headless Chromium: the report, and a notebook.

    unskew report MODEL… --log LOG -o report.html
    python benchmarks/page_pictures.py report.html docs/how-to

Needs Playwright's package and `chromium` from the system's packages. Those of the A/B test, of
interleaving and of an evaluation on a log are drawn by ``online_pictures.py``.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from html import escape
from pathlib import Path
from typing import Any

import unskew
from unskew.datasets.tables import features_table
from unskew.simulate import random_policy, sample

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu")


def notebook() -> str:
    """Cells of a notebook with what each shows: a log, an evaluation, the history of a ranker."""
    labels = unskew.datasets.make_search_dataset(n_queries=80, n_features=16, seed=1)
    table = sample(labels, policy=random_policy(labels), sessions=6_000, seed=1)
    log = unskew.read_log(table, features=features_table(labels))
    ranker = unskew.UnbiasedLambdaMART(n_estimators=30, n_jobs=1, verbose=0).fit(log)
    score = ranker.predict(labels.features)
    cells: list[tuple[str, Any]] = [
        ('log = unskew.read_log("log.parquet", features="features.parquet")\nlog', log),
        (
            'ranker = unskew.load("model")\nunskew.evaluate(ranker.predict(labels.features), labels)',
            unskew.evaluate(score, labels),
        ),
        ('ranker.plot("history")', ranker.plot("history")),
    ]
    parts = [
        f'<div class="cell"><b>[{k}]:</b><pre>{escape(code)}</pre></div>'
        f'<div class="cell"><b></b><div>{shown._repr_html_()}</div></div>'
        for k, (code, shown) in enumerate(cells, start=1)
    ]
    style = (
        "body{margin:16px;font-family:sans-serif;width:900px}.cell{display:flex;gap:10px;margin:8px 0}"
        ".cell>b{width:36px;font:13px monospace;color:#307fc1;padding-top:9px}.cell>*{min-width:0}"
        ".cell pre{flex:1;margin:0;padding:8px;background:#f5f5f5;border:1px solid #ddd;font-size:13px}"
        ".cell>div{flex:1}"
    )
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><style>{style}</style></head>'
        f"<body>{''.join(parts)}</body></html>"
    )


def take(browser: Any, report: Path, folder: Path) -> None:
    """The top of the report, one of its charts while it is read, and the notebook."""
    page = browser.new_context(viewport={"width": 940, "height": 860}).new_page()
    page.goto(report.resolve().as_uri())
    page.screenshot(path=folder / "report.png")
    chart = page.locator("figure.uk-chart", has_text="Position bias by method").first
    chart.scroll_into_view_if_needed()
    chart.locator(".canvas").hover()
    chart.screenshot(path=folder / "report-chart.png")
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "notebook.html"
        file.write_text(notebook(), encoding="utf-8")
        page = browser.new_context(viewport={"width": 960, "height": 900}).new_page()
        page.goto(file.as_uri())
        page.screenshot(path=folder / "notebook.png", full_page=True)


def main() -> None:
    """Take the pictures."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser()
    parser.add_argument("report", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(FLAGS)
        )
        take(browser, arguments.report, arguments.folder)
        browser.close()


if __name__ == "__main__":
    main()
