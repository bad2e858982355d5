"""Does every way to install work? Packages are built, and each extra alone in a clean environment.

``python tests/installs.py`` builds the wheel and the source package of this checkout, installs each of
them, and the wheel with each extra by itself, into a virtual environment that has nothing else, and
uses something of it there. ``python tests/installs.py base onnx`` tries only those. The environments
are temporary; one is removed before the next is made. Prints what each takes on disk, without the pip
and the setuptools that an environment begins with.

This takes some minutes and several gigabytes of downloads, so that it is no part of the tests: run it
before a release.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 900

# Clicks on two features, and a model trained on them: what most extras are tried on.
LOG = """
import numpy as np, unskew
rng = np.random.default_rng(0)
session, doc = np.divmod(np.arange(6_000), 10)
query = session % 30
X = rng.normal(size=(30, 10, 2))[query, doc]
position = (doc + session // 30) % 10 + 1
click = (X[:, 0] > 0.3) & (rng.random(len(doc)) < 1 / position)
data = unskew.Impressions.from_arrays(
    X, click, session=session, query=query, doc=doc, position=position
)
"""
RANKER = LOG + "ranker = unskew.UnbiasedLambdaMART(n_estimators=10, verbose=0).fit(data)\n"
EXPORT = """
from unskew.export.exporting import check_export, export_model
for to in {formats}:
    assert check_export(export_model(ranker, to, to)).agrees
"""
ENGINE = """
data.save("parts", parts=2)
ranker = unskew.UnbiasedLambdaMART(booster="xgboost", n_estimators=5, verbose=0)
{engine}
assert len(ranker.predict(X[:10])) == 10
"""
START = """
import subprocess, sys, time
begin = time.perf_counter()
import unskew
print(f"import unskew: {time.perf_counter() - begin:.3f} s")
begin = time.perf_counter()
subprocess.run([sys.executable, "-m", "unskew", "--help"], check=True, stdout=subprocess.DEVNULL)
print(f"unskew --help: {time.perf_counter() - begin:.3f} s")
"""
JUDGE = """
import pathlib, subprocess, sys, time, urllib.request
table = "query,doc,score,rank\\nq,{},2,1\\nq,{},1,2\\n"
pathlib.Path("a.csv").write_text(table.format("x", "y"))
pathlib.Path("b.csv").write_text(table.format("y", "x"))
command = [sys.executable, "-m", "unskew", "judge", "serve", "a.csv", "b.csv", "--db", "j.sqlite"]
server = subprocess.Popen([*command, "--port", "8765"])
try:
    for _ in range(60):
        time.sleep(0.5)
        try:
            page = urllib.request.urlopen("http://127.0.0.1:8765/").read().decode()
            break
        except OSError:
            assert server.poll() is None
    assert "<form" in page
finally:
    server.terminate()
    server.wait()
"""
TABLE = """
import pyarrow as pa
table = pa.table({"session": session[:20], "query": query[:20], "doc": doc[:20],
                  "position": position[:20], "click": click[:20].astype(int)})
"""
DELTA = (
    LOG
    + TABLE
    + """
import deltalake
deltalake.write_deltalake("clicks", table)
assert unskew.read_log("clicks").n_sessions == 2
"""
)
ICEBERG = """
import unskew
try:
    unskew.read_log("iceberg://nowhere/logs.clicks")
except unskew.DataError as error:
    assert "PYICEBERG_CATALOG__NAME__URI" in str(error), error
"""
NEURAL = (
    LOG
    + """
ranker = unskew.NeuralRanker(n_epochs=2, verbose=0).fit(data)
ranker.save("model")
assert (unskew.load("model").predict(X[:5]) == ranker.predict(X[:5])).all()
"""
)
DASK = 'from unskew.engines import Dask; ranker.fit("parts", engine=Dask(n_workers=2))'
SPARK = 'from unskew.engines import Spark; ranker.fit("parts", engine=Spark(n_workers=1))'
# The processes that Dask starts import the script, which must do nothing then.
GUARDED = "if __name__ == '__main__':\n"
DOCS = [["-m", "sphinx", "--fail-on-warning", "--quiet", str(ROOT / "docs"), "site"]]
TESTS = [
    ["-m", "pytest", "-q", str(ROOT / "tests" / f"test_{n}.py")] for n in ("site", "packaging")
]

# What is run for each extra: text is a program, a list the arguments of Python.
USES: dict[str, list[str | list[str]]] = {
    "base": [START, ["-m", "unskew", "--version"], ["-m", "unskew", "demo", "--quiet"]],
    "xgboost": [RANKER.replace("n_est", "booster='xgboost', n_est"), ],
    "neural": [NEURAL],
    "onnx": [RANKER + EXPORT.format(formats=["onnx"])],
    "treelite": [RANKER + EXPORT.format(formats=["treelite", "c"])],
    "judge": [JUDGE],
    "paper": [["-m", "unskew", "paper", "figure", "bias", "--queries", "40", "--sessions", "400",
               "--seeds", "1", "--quiet"]],
    "docs": [*DOCS],
    "dask": [GUARDED + textwrap.indent(LOG + ENGINE.format(engine=DASK), "    ")],
    "spark": [LOG + ENGINE.format(engine=SPARK)],
    "delta": [DELTA],
    "iceberg": [ICEBERG],
    "dev": [*TESTS],
}  # fmt: skip


def main(wanted: list[str]) -> int:
    """Build, then install and use one after the other; returns how many failed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = list(project["optional-dependencies"])
    assert set(USES) == {"base", *extras}, "an extra has no use here, or a use has no extra"
    failed = 0
    with tempfile.TemporaryDirectory(prefix="unskew-installs-") as place:
        wheel, source = built(Path(place))
        requirements = {"base": str(wheel), "sdist": str(source)}
        requirements |= {extra: f"unskew[{extra}] @ {wheel.as_uri()}" for extra in extras}
        for name in wanted or list(requirements):
            if name not in requirements:
                raise SystemExit(f"{name!r} is none of {', '.join(requirements)}")
            failed += not tried(name, requirements[name], Path(place) / name)
    return failed


def built(place: Path) -> tuple[Path, Path]:
    """The wheel and the source package, built by an environment of its own."""
    python = environment(place / "builder", ["hatchling>=1.27"])
    subprocess.run([python, "-m", "hatchling", "build", "-d", place / "dist"], check=True, cwd=ROOT)
    shutil.rmtree(place / "builder")
    (wheel,), (source,) = ((place / "dist").glob(f"*{end}") for end in (".whl", ".tar.gz"))
    return wheel, source


def environment(folder: Path, requirements: list[str]) -> Path:
    """The interpreter of a new virtual environment with the requirements installed."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    constraints = ["-c", str(ROOT / "constraints.txt")]
    subprocess.run([*command, *constraints, *requirements], check=True)
    return python


def tried(name: str, requirement: str, folder: Path) -> bool:
    """Whether an install works; prints a line of what it takes."""
    begin = time.monotonic()
    try:
        python = environment(folder / "venv", [requirement])
        site = next((folder / "venv" / "lib").glob("python*/site-packages"))
        files = [f for f in site.rglob("*") if f.is_file() and ours(f.relative_to(site))]
        size = sum(f.lstat().st_size for f in files) / 1e6
        for use in USES["base" if name == "sdist" else name]:
            used(python, use, folder)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        say(f"{name:<10} FAILED: {error}")
        return False
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    say(f"{name:<10} {size:7,.0f} MB {time.monotonic() - begin:6.0f} s")
    return True


def ours(file: Path) -> bool:
    """Whether a file of an environment was brought by what was installed into it."""
    return not re.match(r"(pip|setuptools|pkg_resources|_distutils_hack)\b", file.parts[0])


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def used(python: Path, use: str | list[str], folder: Path) -> None:
    """Run a use in a folder of its own, without a path to this checkout."""
    if isinstance(use, str):
        file = folder / "use.py"
        file.write_text(textwrap.dedent(use), encoding="utf-8")
        use = [str(file)]
    subprocess.run([python, *use], check=True, cwd=folder, timeout=SECONDS, env=clean())


def clean() -> dict[str, str]:
    """The environment variables without those that lead to another Python."""
    return {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
