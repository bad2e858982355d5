"""Every command as a user calls it: on damaged files, and with options that make no sense.

The samples of `prepare` have one of every file that a command reads. A case damages one of them, or
gives a command options of its own with strange values. A command that ends well must have printed
JSON without NaN, and written what can be read back; without strange options its result is compared
with a slow reading of the same files.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer.main

import unskew
from fuzz.mutations import mutated_bytes
from fuzz.oracle import Kind, main
from fuzz.parts import damage_parts
from fuzz.samples import prepare, run_command, tuned
from fuzz.saved_folders import damage_a_file
from fuzz.slow_reading import UnreadableError, key, number, read_rows, sessions
from fuzz.tables import damaged_rows, found_sessions, write_rows
from unskew.cli.app import app

# Commands ---------------------------------------------------------------------------------------


class Call(NamedTuple):
    """A command, the files it reads, and whether its result is what a slow reading finds."""

    words: tuple[str, ...]
    reads: tuple[str, ...]
    options: tuple[str, ...] = ()
    check: Callable[[Path, str], str | None] = lambda place, printed: None


TRAINING = ("--n-estimators", "2", "--min-data-in-leaf", "2", "--threads", "1", "-q")


def check_inspect(place: Path, printed: str) -> str | None:
    """The numbers of sessions, queries and clicks."""
    shown = json.loads(printed)
    file = next(f for f in (place / "log.csv", place / "log.parquet") if str(f) == shown["source"])
    rows = read_rows([file])
    slow = {
        "rows": len(rows), "sessions": len({key(r["session"]) for r in rows}),
        "queries": len({key(r["query"]) for r in rows}),
        "clicks": sum(number(r["click"]) != 0 for r in rows),
    }  # fmt: skip
    found = {name: shown[name] for name in slow}
    return None if found == slow else f"{found}, slowly {slow}"


def check_compact(place: Path, printed: str) -> str | None:
    """Every session, read back from the folder."""
    data = unskew.load(place / "out")
    slow = sessions(read_rows([place / "log.csv"]), data.features.names)
    return None if found_sessions(data) == slow else "other sessions than slowly"


def check_model(place: Path, printed: str) -> str | None:
    """The model loads and gives finite scores."""
    model = unskew.load(place / "out")
    score = model._predict(np.zeros((3, len(model.feature_names_))))
    return None if np.isfinite(score).all() else "scores are not finite"


def check_config(place: Path, printed: str) -> str | None:
    """The model has the settings of the file."""
    import tomllib

    wrong = check_model(place, printed)
    params = unskew.load(place / "out").get_params()
    for name, value in tomllib.loads((place / "config.toml").read_text()).items():
        if name not in {"ranker", "n_jobs", "verbose", "debias"} and params.get(name) != value:
            wrong = f"{name} is {params.get(name)!r}, in the file {value!r}"
    return wrong


def check_evaluate(place: Path, printed: str) -> str | None:
    """NDCG@10 of the column bm25, by the definition."""
    groups: dict[str, list[tuple[float, float]]] = {}
    for row in read_rows([place / "labels.csv"]):
        pair = (number(row["bm25"]), number(row["relevance"]))
        if pair[0] is None or pair[1] is None:
            raise UnreadableError("a score or grade is missing")
        groups.setdefault(key(row["query"]), []).append(pair)  # type: ignore[arg-type]
    values = []
    for pairs in groups.values():
        ideal = _dcg(sorted((grade for _, grade in pairs), reverse=True))
        if ideal:
            values.append(_dcg([g for _, g in sorted(pairs, key=lambda one: -one[0])]) / ideal)
    found = json.loads(printed)["rankers"]["bm25"]["ndcg@10"]["mean"]
    return None if abs(found - np.mean(values)) < 1e-9 else f"{found}, slowly {np.mean(values)}"


def _dcg(grades: list[float]) -> float:
    return sum((2.0**g - 1) / math.log2(k + 2) for k, g in enumerate(grades[:10]))


def check_ab(place: Path, printed: str) -> str | None:
    """The sessions of both arms."""
    slow = [
        len({key(row["session"]) for row in read_rows([place / name])})
        for name in ("control.csv", "treatment.parquet")
    ]
    found = json.loads(printed)["sessions"]
    shown = list(found.values()) if isinstance(found, dict) else found
    return None if list(shown) == slow else f"{found} sessions, slowly {slow}"


def check_mixed(place: Path, printed: str) -> str | None:
    """Every list holds documents of the two rankings, each once."""
    known = [
        {(key(row["query"]), key(row["doc"])) for row in read_rows([place / name])}
        for name in ("a.csv", "b.parquet")
    ]
    rows = [
        (str(r["query"]), str(r["doc"])) for r in pq.read_table(place / "out.parquet").to_pylist()
    ]
    if len(set(rows)) != len(rows):
        return "a document stands twice in a list"
    return None if set(rows) <= known[0] | known[1] else "a document of no ranking"


def check_simulated(place: Path, printed: str) -> str | None:
    """So many sessions, and features of every document shown."""
    log = pq.read_table(place / "out.parquet").to_pylist()
    features = pq.read_table(place / "out.features.parquet").to_pylist()
    known = {(row["query"], row["doc"]) for row in features}
    if len({row["session"] for row in log}) != 30:
        return f"{len({row['session'] for row in log})} sessions"
    return None if {(r["query"], r["doc"]) for r in log} <= known else "a document has no features"


def check_relevance(place: Path, printed: str) -> str | None:
    """The relevance of every document of the log is a probability."""
    rows = pq.read_table(place / "out.parquet").to_pylist()
    slow = {(key(r["query"]), key(r["doc"])) for r in read_rows([place / "log.csv"])}
    if {(str(r["query"]), str(r["doc"])) for r in rows} != slow:
        return "other documents than slowly"
    inside = all(0 <= r["relevance"] <= 1 for r in rows)
    return None if inside else "a relevance is no probability"


def check_events(place: Path, printed: str) -> str | None:
    """The number of impressions with a click by the other table."""
    shown = json.loads(printed)
    clicked = {
        (key(row["session"]), key(row["doc"]))
        for row in read_rows([place / "events.csv"])
        if row["session"] and row["doc"] and ("click" not in row or number(row["click"]))
    }
    rows = read_rows([place / "shown.csv"])
    clicks = sum((key(row["session"]), key(row["doc"])) in clicked for row in rows)
    found = shown["rows"], shown["clicks"]
    return None if found == (len(rows), clicks) else f"{found}, slowly {len(rows), clicks}"


def check_names(place: Path, printed: str) -> str | None:
    """The model has the features of the file."""
    text = (place / "names.txt").read_text("utf-8-sig")
    names = [line.strip() for line in text.split("\n") if line.strip() and line[0] != "#"]
    found = list(unskew.load(place / "out").feature_names_)
    return check_model(place, printed) if found == names else f"{found}, in the file {names}"


def check_report(place: Path, printed: str) -> str | None:
    """One whole page."""
    text = (place / "out.html").read_text("utf-8")
    return None if text.rstrip().endswith("</html>") else "half a page"


def check_served(place: Path, printed: str) -> str | None:
    """Questions are kept for queries of the file whose lists are in both rankings."""
    from unskew.online.judging.database import read_judged

    known = [
        {key(row["query"]) for row in read_rows([place / name])} for name in ("a.csv", "b.parquet")
    ]
    asked = set(read_judged(place / "out.sqlite").asked)
    return None if asked <= known[0] & known[1] else "a query of one ranking only is asked"


def check_rendered(place: Path, printed: str) -> str | None:
    """The page is whole, and every figure is a number."""
    text = (place / "study" / "report.html").read_text("utf-8")
    if not text.rstrip().endswith("</html>"):
        return "half a page"
    return "a figure is no number" if ">nan<" in text.lower() else None


CALLS: tuple[Call, ...] = (
    Call(("inspect", "log.csv", "--json", "-q"), ("log.csv",), check=check_inspect),
    Call(("inspect", "log.parquet", "--json", "-q"), ("log.parquet",), check=check_inspect),
    Call(("inspect", "compact"), ("compact",)),
    Call(("compact", "log.csv", "-o", "out", "-q"), ("log.csv",), check=check_compact),
    Call(("bias", "log.csv", "--json", "--resamples", "0", "-q", "--threads", "1",
          "-m", "pairwise", "-m", "relative-ctr", "--bias", "bias.json"), ("log.csv", "bias.json")),
    Call(("clicks", "log.csv", "-m", "pbm", "-q", "-o", "out.parquet"), ("log.csv",),
         check=check_relevance),
    Call(("train", "log.csv", "-o", "out", *TRAINING), ("log.csv",), check=check_model),
    Call(("train", "compact", "-o", "out", *TRAINING), ("compact",), check=check_model),
    Call(("train", "log.parquet", "-o", "out", "-q", "--threads", "1", "--config", "config.toml"),
         ("config.toml",), check=check_config),
    Call(("train", "log.parquet", "-o", "out", *TRAINING, "--debias", "bias.json"), ("bias.json",),
         check=check_model),
    Call(("train", "letor.txt", "--labels", "-o", "out", *TRAINING), ("letor.txt",),
         check=check_model),
    Call(("train", "log.parquet", "-o", "out", *TRAINING, "--init-model", "model"), ("model",),
         check=check_model),
    Call(("rank", "model", "candidates.csv", "-o", "out.parquet", "--threads", "1"),
         ("model", "candidates.csv")),
    Call(("evaluate", "--score", "bm25", "--labels", "labels.csv", "--metrics", "ndcg@10", "--ties",
          "stable", "--json"), ("labels.csv",), check=check_evaluate),
    Call(("evaluate", "model", "--labels", "labels.parquet", "--json"), ("model", "labels.parquet")),
    Call(("evaluate", "model", "--log", "log.csv", "--bias", "bias.json", "--json"),
         ("model", "log.csv", "bias.json")),
    Call(("ab", "read", "control.csv", "treatment.parquet", "--user", "user", "--json"),
         ("control.csv", "treatment.parquet"), check=check_ab),
    Call(("ab", "plan", "control.csv", "--relative", "0.1", "--json"), ("control.csv",)),
    Call(("interleave", "mix", "a.csv", "b.parquet", "-o", "out.parquet"), ("a.csv", "b.parquet"),
         check=check_mixed),
    Call(("interleave", "read", "clicks.csv", "--json"), ("clicks.csv",)),
    Call(("judge", "results", "judged.sqlite", "--json"), ("judged.sqlite",)),
    Call(("judge", "serve", "a.csv", "b.parquet", "--db", "out.sqlite", "--queries", "queries.txt",
          "--items", "items.csv", "--guidelines", "guidelines.md", "--port", "0"),
         ("a.csv", "b.parquet", "queries.txt", "items.csv", "guidelines.md"), check=check_served),
    Call(("paper", "render", "-o", "study"), ("study",), check=check_rendered),
    Call(("inspect", "parts"), ("parts",)),
    Call(("train", "parts", "-o", "out", *TRAINING), ("parts",), check=check_model),
    Call(("compact", "log.csv", "-o", "out", "--parts", "2", "-q"), ("log.csv",),
         check=check_compact),
    Call(("inspect", "log.jsonl", "--json", "-q"), ("log.jsonl",)),
    Call(("inspect", "shown.csv", "--events", "events.csv", "--json", "-q"),
         ("shown.csv", "events.csv"), check=check_events),
    Call(("train", "log.parquet", "-o", "out", "--feature-names", "names.txt", *TRAINING),
         ("names.txt",), check=check_names),
    Call(("tune", *tuned("log.parquet", "record.json", "out")), ("record.json", "log.parquet"),
         check=check_model),
    Call(("advise", "log.csv", "--json", "--resamples", "0", "-q", "--threads", "1"),
         ("log.csv",)),
    Call(("report", "model", "--log", "log.csv", "--labels", "labels.csv", "-o", "out.html",
          "--resamples", "0", "-m", "relative-ctr", "--threads", "1", "-q"),
         ("model", "log.csv", "labels.csv"), check=check_report),
    Call(("export", "model", "--to", "elasticsearch", "-o", "out", "--check"), ("model",)),
    Call(("export", "export", "--check"), ("export",)),
    Call(("simulate", "labels.csv", "-o", "out.parquet", "--sessions", "30", "--policy", "random",
          "-q"), ("labels.csv",), check=check_simulated),
)  # fmt: skip


# Cases ------------------------------------------------------------------------------------------


def attempt_damaged(sample: Path, case: int, place: Path) -> str | None:
    """A command on files of which one is damaged."""
    rng = np.random.default_rng([case, 6])
    call = CALLS[case % len(CALLS)]
    where = Path(shutil.copytree(sample, place / "files"))
    damage(where / call.reads[rng.integers(len(call.reads))], rng)
    printed = run_command(*_placed(call.words, where))
    try:
        return _confirmed(printed, where) or call.check(where, printed)
    except UnreadableError as error:
        return f"{call.words[0]} read it, but slowly: {error}"


def damage(path: Path, rng: np.random.Generator) -> None:
    """Change a file, or one file of a folder."""
    if path.name == "parts":
        damage_parts(path, rng)
    elif path.name == "study":
        _damage_results(path / "results.parquet", rng)
    elif path.is_dir():
        damage_a_file(path, rng)
    elif path.suffix in {".csv", ".parquet"} and rng.random() < 0.7:
        rows = read_rows([path])
        path.unlink()
        write_rows(damaged_rows(rows, rng), path, rng)
    else:
        path.write_bytes(mutated_bytes(path.read_bytes(), rng))


def _damage_results(file: Path, rng: np.random.Generator) -> None:
    """Change some bytes of a study's results, or some of its cells, rows or columns."""
    if rng.random() < 0.3:
        file.write_bytes(mutated_bytes(file.read_bytes(), rng))
        return
    rows = damaged_rows(pq.read_table(file).to_pylist(), rng)
    for name in ("t_plus", "average_rank"):
        if rows and rng.random() < 0.2 and isinstance(rows[0].get(name), list):
            rows[0][name] = [float("nan"), *rows[0][name][2:]]
    try:
        table = pa.Table.from_pylist(rows)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        table = pa.Table.from_pylist([{k: str(v) for k, v in row.items()} for row in rows])
    pq.write_table(table, file)


def attempt_options(sample: Path, case: int, place: Path) -> str | None:
    """A command with one to three of its options, given values that may make no sense."""
    rng = np.random.default_rng([case, 7])
    call = CALLS[case % len(CALLS)]
    where = Path(shutil.copytree(sample, place / "files"))
    words = [*_placed(call.words, where), *strange_options(call, where, rng)]
    printed = run_command(*words)
    wrong = _confirmed(printed, where)
    return None if wrong is None else f"{words[len(call.words) :]}: {wrong}"


VALUES = (
    "0", "-1", "1", "2", "3", "0.5", "-0.0", "1e-320", "1e38", "1e308", "nan", "inf", "-inf", "x", "",
    "[/b]", "é\n", "../x", "true", "none", "query", "doc", "click", "bm25", "age", "a,b", "1,0.5,0.2",
)  # fmt: skip
LARGE = ("2147483647", "2147483648", "9223372036854775807", "99999999999999999999999")
ASSIGNED = (
    "max_bin", "boosting", "device_type", "num_leaves", "lambda_l2", "max_depth", "min_gain_to_split",
    "theta", "epsilon", "max_delta_step", "subsample", "extra_trees", "linear_tree", "path_smooth",
    "monotone_constraints", "cat_smooth", "seed", "bin_construct_sample_cnt", "verbosity", "x",
)  # fmt: skip
# Options that ask for so much work: large values of them are a long wait and no mistake.
WORK = {
    "n_estimators",
    "sessions",
    "resamples",
    "queries",
    "n_positions",
    "length",
    "top",
    "memory_limit",
}


def strange_options(call: Call, place: Path, rng: np.random.Generator) -> list[str]:
    """One to three options of the command with values from the pool."""
    command: Any = typer.main.get_command(app)
    for word in call.words:
        if word in getattr(command, "commands", {}):
            command = command.commands[word]
    options = [one for one in command.params if one.param_type_name == "option"]
    options = [one for one in options if one.name not in {"help", "out", "db", "memory_limit"}]
    files = [str(file) for file in sorted(place.iterdir())]
    words: list[str] = []
    for _ in range(int(rng.integers(1, 4)) if options else 0):
        option = options[rng.integers(len(options))]
        words.append(option.opts[0])
        if option.name in {"assignments", "parameter"}:
            name = ASSIGNED[rng.integers(len(ASSIGNED))]
            words.append(f"{name}={VALUES[rng.integers(len(VALUES))]}")
        elif not option.is_flag:
            pool = [*VALUES, *(() if option.name in WORK else LARGE), *files]
            words.append(pool[rng.integers(len(pool))])
    return words


def _placed(words: tuple[str, ...], place: Path) -> list[str]:
    """The words with the names of files in the place of the case."""
    known = {file.name for file in place.iterdir()} | {
        "out",
        "out.parquet",
        "out.html",
        "out.sqlite",
    }
    return [str(place / word) if k and word in known else word for k, word in enumerate(words)]


def _confirmed(printed: str, place: Path) -> str | None:
    """Whether JSON has no NaN, and what was written can be read again."""
    if printed.startswith(("{", "[")):

        def refuse(constant: str) -> None:
            raise AssertionError(f"JSON holds {constant}")

        json.loads(printed, parse_constant=refuse)
    if (place / "out.parquet").exists():
        pq.read_table(place / "out.parquet")
    if (place / "out" / "unskew.json").exists() and not (place / "out" / "samples.json").exists():
        unskew.load(place / "out")
    left = [p.name for p in place.iterdir() if p.name.startswith(".unskew-")]
    return f"left {left}" if left else None


KINDS = (
    Kind("commands on damaged files", ("files",), prepare, attempt_damaged),
    Kind("commands with strange options", ("files",), prepare, attempt_options),
)

if __name__ == "__main__":
    main(KINDS)
