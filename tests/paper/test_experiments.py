"""Every table and figure end to end, small: the shape and the bookkeeping, not the outcome."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from unskew import __version__
from unskew.errors import DataError, MissingDependencyError, UsageError
from unskew.paper import rendering, running
from unskew.paper.experiments import COMPARED, EXPERIMENTS, FIGURES, runs_of
from unskew.paper.names import METHOD_NAMES, RANKER_NAMES
from unskew.paper.peers import PEERS
from unskew.paper.profiles import candidates, paper_settings
from unskew.paper.rendering import render
from unskew.paper.runs import FILE, METRICS, PAPER, TUNED, Run, read_results, save_results
from unskew.paper.training import perform
from unskew.registry import RANKERS
from unskew.simulate import sampling


def test_every_run_leaves_one_row(study, done):
    """The file has exactly one row for each run, with its metrics, time, settings and version."""
    runs = runs_of(study, list(EXPERIMENTS))
    results = read_results(done)
    assert sorted(r.key for r in results) == sorted({study.key(run) for run in runs})
    for result in results:
        assert set(result.metrics) == set(METRICS)
        assert all(0 <= value <= 1 for value in result.metrics.values())
        assert result.seconds > 0
        assert result.version == __version__
        assert json.loads(result.settings)


def test_the_table_has_every_method_in_both_settings(study, done):
    """Every ranker with every treatment, for every seed, in the paper's and in chosen settings."""
    found = {(r.ranker, r.method, r.seed, r.protocol) for r in read_results(done)}
    for ranker, methods in COMPARED.items():
        for method in methods:
            for seed in (1, 2):
                # What chooses by itself has no settings of the paper's.
                protocols = (TUNED,) if ranker == "auto" else (PAPER, TUNED)
                assert {(ranker, method, seed, one) for one in protocols} <= found


def test_experiments_share_their_runs(study):
    """What two experiments need is run once: re-ranking and bias need nothing beyond the table."""
    table = runs_of(study, ["table"])
    assert runs_of(study, ["table", "reranking", "bias"]) == table
    everything = runs_of(study, list(EXPERIMENTS))
    assert len({study.key(run) for run in everything}) == len(everything)


def test_rows_know_the_truth(done):
    """The true bias falls as the model says, and ranks lie within the page."""
    for result in read_results(done):
        if (result.click_model, result.severity) == ("pbm", 0.0):
            assert result.true_bias == pytest.approx([1.0] * len(result.true_bias))
        assert result.true_bias[0] == 1.0
        assert all(1 <= rank <= 10 for rank in result.average_rank + result.ideal_rank)


def test_chosen_settings_are_the_best_candidate(done):
    """The settings in the row are those with the highest validation measure, the paper's among them."""
    for result in read_results(done):
        if result.protocol != TUNED:
            assert result.candidates is None
            continue
        tried = json.loads(result.candidates)
        best = max(tried, key=lambda one: one["validation"])
        assert json.loads(result.settings) == best["settings"]


@pytest.mark.parametrize("ranker", [name for name in COMPARED if name != "auto"])
def test_the_first_candidate_has_the_settings_of_the_paper(study, ranker):
    """Choosing begins from the paper's settings."""
    first = candidates(ranker, "pairwise", study.profile)[0]
    assert paper_settings(ranker, study.profile).items() <= first.items()
    assert first["p"] == 0.0


def test_the_same_run_gives_the_same_row(study, done):
    """A run repeated elsewhere gives the same numbers."""
    run = Run(1, 2, "lambdamart", "pairwise", p=0.0)
    before = next(r for r in read_results(done) if r.key == study.key(run))
    again = perform(study, run)
    assert again.metrics == before.metrics
    assert again.t_plus == before.t_plus


@pytest.fixture
def nothing_trains(monkeypatch):
    """Every ranker, every peer and the simulator refuse to work, wherever they are called from."""
    for entry in RANKERS.values():
        monkeypatch.setattr(entry.load(), "fit", _refuse)
        monkeypatch.setattr(entry.load(), "fit_labels", _refuse)
    for peer in PEERS:
        monkeypatch.setattr(pytest.importorskip(peer), "train", _refuse)
    monkeypatch.setattr(sampling._Simulation, "batch", _refuse)


@pytest.mark.parametrize(
    ("ranker", "method"),
    [(ranker, method) for ranker in COMPARED for method in ("clicks", "labels")]
    + [(peer, "own") for peer in PEERS],
)
def test_a_section_that_trains_is_caught(
    ranker, method, study, done, tmp_path, monkeypatch, nothing_trains
):
    """The guard of the next test holds: a rendering that trained anything would fail it."""
    folder = shutil.copytree(done, tmp_path / "copy")
    run = Run(1, 1, ranker, method)
    monkeypatch.setattr(rendering, "SECTIONS", {"table": lambda results: perform(study, run)})
    with pytest.raises(AssertionError, match="something was trained"):
        render(folder)


def test_rendering_trains_nothing(done, tmp_path, nothing_trains):
    """All files are written from the rows alone, every method is named, pictures are pictures."""
    folder = shutil.copytree(done, tmp_path / "copy")
    sections = render(folder)
    assert set(sections) == {"claims", *EXPERIMENTS}
    text = (folder / "results.md").read_text(encoding="utf-8")
    page = (folder / "report.html").read_text(encoding="utf-8")
    for ranker, methods in COMPARED.items():
        for method in methods:
            for written in (text, page):
                assert RANKER_NAMES[ranker] in written
                assert METHOD_NAMES[method] in written
    for name in FIGURES:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert ET.parse(folder / f"{name}.svg").getroot().tag.endswith("svg")  # noqa: S314
        assert f"]({name}.png)" in text
    # Every chart of a figure at two widths.
    panels = sum(len(section.plot or ()) for section in sections.values())
    assert page.count("<svg") == 2 * panels >= 2 * len(FIGURES)
    assert not re.search(r"(src|href)=.http", page)


def test_rendering_loads_nothing_that_trains():
    """The module that renders imports neither rankers nor the simulator."""
    code = "import sys, unskew.paper.rendering; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "unskew.paper.sections" in loaded
    trained = ("unskew.rankers", "unskew.simulate", "unskew.paper.training", "unskew.paper.worlds")
    assert not [name for name in loaded if name.startswith(trained)]


def test_rendering_again_gives_the_same_files(done, tmp_path):
    """The same rows give the same bytes."""
    first, second = (shutil.copytree(done, tmp_path / name) for name in ("first", "second"))
    render(first)
    render(second)
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes(), path.name


def _refuse(*arguments, **options):
    raise AssertionError("something was trained")


def test_a_part_is_rendered_as_a_part(study, done, tmp_path):
    """Results of a few runs give the sections that they suffice for, and no error."""
    few = [r for r in read_results(done) if r.ranker == "lambdamart" and r.seed == 1]
    save_results(tmp_path, few)
    assert "table" in render(tmp_path)
    assert "one seed" in (tmp_path / "results.md").read_text(encoding="utf-8")


def test_what_is_done_is_not_run_again(study, done, tmp_path, monkeypatch):
    """With all results there nothing is trained; with some missing, only those."""
    runs = runs_of(study, ["table"])
    results = read_results(done)
    missing = {study.key(runs[0]), study.key(runs[-1])}
    save_results(tmp_path, [r for r in results if r.key not in missing])
    performed = []

    def remember(study, run):
        performed.append(study.key(run))
        return next(r for r in results if r.key == study.key(run))

    monkeypatch.setattr(running, "perform", remember)
    running.run_all(study, runs, tmp_path, jobs=1)
    assert set(performed) == missing
    running.run_all(study, runs, tmp_path, jobs=1)
    assert len(performed) == 2


def test_an_interruption_keeps_what_was_complete(study, done, tmp_path, monkeypatch):
    """Ctrl-C in the middle: the complete rows are on disk, the next call does the rest."""
    results = {r.key: r for r in read_results(done)}
    runs = runs_of(study, ["amount"])
    calls = []

    def stop_after_three(study, run):
        calls.append(run)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return results[study.key(run)]

    monkeypatch.setattr(running, "perform", stop_after_three)
    with pytest.raises(KeyboardInterrupt):
        running.run_all(study, runs, tmp_path, jobs=1)
    assert len(read_results(tmp_path)) == 3
    assert len(running.missing_runs(study, runs, tmp_path)) == len(runs) - 3


def test_a_ranker_cut_short_is_no_result(study, monkeypatch):
    """Ctrl-C inside a training, after which the ranker keeps its trees, leaves no row."""
    from unskew.rankers.lambdamart.training import TreeTraining

    calls = []
    plain = TreeTraining.step

    def second_round_interrupted(training):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return plain(training)

    monkeypatch.setattr(TreeTraining, "step", second_round_interrupted)
    with pytest.raises(KeyboardInterrupt):
        perform(study, Run(1, 1, "lambdamart", "clicks"))


@pytest.mark.slow
def test_processes_share_the_work_and_survive_a_kill(tmp_path):
    """Two processes fill the file; killed at any moment, it is whole and the next call goes on."""
    out = tmp_path / "paper"
    command = [
        sys.executable, "-c", "from unskew.cli import main; main()", "paper", "figure", "amount",
        "--queries", "40", "--sessions", "300", "--seeds", "1", "--jobs", "2", "-o", str(out),
    ]  # fmt: skip
    first = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             start_new_session=True)  # fmt: skip
    deadline = time.monotonic() + 90
    while not (out / FILE).is_file() and time.monotonic() < deadline and first.poll() is None:
        time.sleep(0.1)
    if first.poll() is None:
        os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    before = len(read_results(out))
    second = subprocess.run(command, capture_output=True, text=True, check=True)
    assert len(read_results(out)) == 12
    assert f"{before:,} of them are done already" in second.stderr
    assert (out / "amount.png").is_file()


def _descendants(pid: int) -> set[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    children = {int(child) for child in listed.read_text().split()} if listed.exists() else set()
    return children.union(*map(_descendants, children))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_workers_end_with_their_parent(tmp_path):
    """Processes that a killed command started do not go on without it."""
    command = [
        sys.executable, "-c", "from unskew.cli import main; main()", "paper", "figure", "amount",
        "--queries", "200", "--sessions", "90000", "--seeds", "4", "--jobs", "2", "-o", str(tmp_path),
    ]  # fmt: skip
    parent = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 90
    while len(_descendants(parent.pid)) < 3:  # two workers, and Python's tracker of resources
        assert parent.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(3)
    started = _descendants(parent.pid)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 30
    while any(_is_running(pid) for pid in started):
        assert time.monotonic() < deadline, "a worker outlived its parent"
        time.sleep(0.1)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("missing", ["torch", "xgboost", "matplotlib"])
def test_a_missing_extra_is_named_before_anything_runs(study, tmp_path, monkeypatch, missing):
    """Without PyTorch, XGBoost or Matplotlib the study does not begin; the install line is there."""
    found = running.find_spec
    monkeypatch.setattr(running, "find_spec", lambda m: None if m == missing else found(m))
    monkeypatch.setattr(running, "perform", _refuse)
    with pytest.raises(MissingDependencyError, match=r"pip install 'unskew\[paper\]'"):
        running.run_all(study, runs_of(study, list(EXPERIMENTS)), tmp_path, jobs=1)


def test_a_folder_holds_one_study(study, done, tmp_path):
    """Other sizes in the same folder are refused before anything is trained, and never mixed."""
    larger = replace(study, profile=replace(study.profile, sessions=500))
    with pytest.raises(UsageError, match="another study"):
        running.run_all(larger, runs_of(larger, ["amount"]), done, jobs=1)
    results = read_results(done)
    save_results(tmp_path, [results[0], replace(results[1], study=larger.name)])
    with pytest.raises(DataError, match="several studies"):
        render(tmp_path)


def test_a_broken_file_is_named(tmp_path):
    """A file that is no Parquet, or other Parquet, is an error that names it and the remedy."""
    (tmp_path / FILE).write_bytes(b"not parquet")
    with pytest.raises(DataError, match="is not a readable Parquet file"):
        read_results(tmp_path)
    table = pq.read_table(_other(tmp_path))
    pq.write_table(table, tmp_path / FILE)
    with pytest.raises(DataError, match="has no column 'study'"):
        read_results(tmp_path)
    with pytest.raises(DataError, match="holds no results"):
        render(tmp_path / "empty")


def _other(folder: Path) -> Path:
    import pyarrow as pa

    pq.write_table(pa.table({"x": [1]}), folder / "other.parquet")
    return folder / "other.parquet"
