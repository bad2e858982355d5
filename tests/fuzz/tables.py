"""Logs, features, labels and candidates: small tables that are damaged and read.

What is read must be what the slow reading finds in the same files, session for session and document
for document.
"""

from __future__ import annotations

import gzip
import importlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import unskew
from fuzz.mutations import STRANGE, mutated_bytes
from fuzz.oracle import Kind, main
from fuzz.slow_reading import (
    Row,
    UnreadableError,
    document_features,
    key,
    letor_rows,
    number,
    read_rows,
    sessions,
)

# Loaded once, here: a child that imports it itself may seem to hang.
for _module in ("unskew.log.read", "unskew.log.attach", "sklearn.datasets", "unskew.cli.rank"):
    importlib.import_module(_module)

IDS = (
    lambda k: k, lambda k: f"{k:04d}", lambda k: f"a {k}", lambda k: 10**19 + k,
    lambda k: "🦊" * (k + 1), lambda k: f"q,\"{k}\"", lambda k: str(10**19 + k),
)  # fmt: skip
ENDINGS = (".csv", ".csv", ".parquet", ".csv.gz")
HEADERS = ("x", "Session", "click ", "", "doc", "unskew_row", 'a"b', "f0", "position", "weight")


# Making and damaging rows -----------------------------------------------------------------------


def log_rows(rng: np.random.Generator, *, features: bool = True) -> list[Row]:
    """A small valid log, in any order of sessions."""
    make = [IDS[k] for k in rng.integers(len(IDS), size=3)]
    weighted, in_context = rng.random(2) < 0.3
    values = rng.normal(size=(3, 6)).round(3)
    rows: list[Row] = []
    for number_ in rng.permutation(int(rng.integers(2, 12))):
        query = int(rng.integers(3))
        docs = rng.permutation(6)[: int(rng.integers(1, 5))]
        places = np.cumsum(rng.integers(1, 3, size=len(docs)))
        session = {"session": make[0](int(number_)), "query": make[1](query)}
        extra = {"weight": float(number_ % 3)} if weighted else {}
        extra |= {"context": "phone" if number_ % 2 else None} if in_context else {}
        for doc, place in zip(docs.tolist(), places.tolist(), strict=True):
            x = {"x": float(values[query, doc]), "n": doc or None} if features else {}
            grade = int(rng.integers(0, 3)) if rng.random() < 0.5 else 0
            rows.append(
                session | {"doc": make[2](doc), "position": place, "click": grade} | extra | x
            )
    if not any(row["click"] for row in rows):
        rows[0]["click"] = 1
    if rng.random() < 0.3:
        rows = [rows[k] for k in rng.permutation(len(rows))]
    return rows


def damaged_rows(rows: list[Row], rng: np.random.Generator) -> list[Row]:
    """The rows with up to three cells, rows or columns changed."""
    rows = [dict(row) for row in rows]
    for _ in range(int(rng.integers(0, 4))):
        if not rows or not rows[0]:
            return rows
        at, names = int(rng.integers(len(rows))), list(rows[0])
        name = names[int(rng.integers(len(names)))]
        how = rng.integers(9)
        if how == 0:
            rows.pop(at)
        elif how == 1:
            rows.insert(int(rng.integers(len(rows))), dict(rows[at]))
        elif how == 2:
            other = HEADERS[rng.integers(len(HEADERS))]
            if other not in names:
                rows = [{other if k == name else k: v for k, v in row.items()} for row in rows]
        elif how == 3:
            rows = [{k: v for k, v in row.items() if k != name} for row in rows]
        elif how == 4:
            rows[at][name] = rows[int(rng.integers(len(rows)))][name]
        else:
            strange = STRANGE[rng.integers(len(STRANGE))]
            rows[at][name] = None if isinstance(strange, list | dict) else strange
    return rows


def write_rows(rows: list[Row], file: Path, rng: np.random.Generator) -> None:
    """Write rows as the ending says; in Parquet a column of several types becomes text."""
    names = list(rows[0]) if rows else ["session"]
    if file.suffix == ".parquet":
        columns = [_column([row[name] for row in rows], rng) for name in names]
        pq.write_table(pa.table(columns, names=names), file)
        return
    lines = [",".join(_cell(name) for name in names)]
    lines += [",".join(_cell(row[name]) for name in names) for row in rows]
    end = "\r\n" if rng.random() < 0.2 else "\n"
    raw = (end.join(lines) + (end if rng.random() < 0.8 else "")).encode("utf-8", "surrogatepass")
    if rng.random() < 0.3 and len(raw) > 1:
        raw = mutated_bytes(raw, rng)
    file.write_bytes(gzip.compress(raw) if file.suffix == ".gz" else raw)


def _column(values: list[Any], rng: np.random.Generator) -> pa.Array:
    for kind in (None, pa.float64(), pa.uint64()):
        try:
            column = pa.array(values, kind)
        except (pa.ArrowException, OverflowError, UnicodeEncodeError):
            continue
        if pa.types.is_null(column.type):
            return column.cast(pa.float64())
        if pa.types.is_string(column.type) and rng.random() < 0.2:
            return column.dictionary_encode()
        return column
    return pa.array(
        [None if v is None else str(v).encode(errors="replace").decode() for v in values]
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = str(int(value)) if isinstance(value, bool) else str(value)
    if set(text) & set(',"\r\n'):
        text = '"' + text.replace('"', '""') + '"'
    return text


# Logs -------------------------------------------------------------------------------------------

ROLES = {"session", "query", "doc", "position", "click", "weight", "context", "time"}


def found_sessions(data: unskew.Impressions) -> Counter[Any]:
    """The multiset of sessions of Impressions, as the slow reading tells them."""
    pages, patterns, documents = data.pages, data.patterns, data.documents
    names = data.features.names
    shown = [
        tuple(
            data.features.categories[name][int(v)] if name in data.features.categories
            and not np.isnan(v) else ("missing" if np.isnan(v) else repr(float(v) + 0.0))
            for name, v in zip(names, row, strict=True)
        )
        for row in data.features.values
    ]  # fmt: skip
    counted: Counter[Any] = Counter()
    contexts = [str(c) for c in data.contexts.tolist()]
    queries, docs = data.queries.tolist(), documents.doc.tolist()
    for k in range(len(patterns)):
        page = int(patterns.page[k])
        slots = range(int(pages.offsets[page]), int(pages.offsets[page + 1]))
        clicked = dict(
            zip(
                patterns.slot[patterns.offsets[k] : patterns.offsets[k + 1]].tolist(),
                patterns.grade[patterns.offsets[k] : patterns.offsets[k + 1]].tolist(),
                strict=True,
            )
        )
        listed = sorted(
            (
                int(pages.position[at]), str(docs[pages.document[at]]),
                int(clicked.get(slot, 0)), shown[pages.document[at]],
            )
            for slot, at in enumerate(slots)
        )  # fmt: skip
        context = None if patterns.context[k] < 0 else contexts[patterns.context[k]]
        head = (str(queries[pages.query[page]]), context, float(patterns.weight[k]))
        counted[(*head, tuple(listed))] += int(patterns.count[k])
    return counted


def _compare(found: Counter[Any], expected: Counter[Any]) -> str | None:
    if found == expected:
        return None
    only = [str(one)[:150] for one in (found - expected)][:1]
    missing = [str(one)[:150] for one in (expected - found)][:1]
    return f"{found.total()} sessions, slowly {expected.total()}: {only} instead of {missing}"


def check_feature_names(rows: list[Row], data: unskew.Impressions) -> None:
    """An `UnreadableError` unless every column with a name that is no role is a feature."""
    if rows and {n for n in rows[0] if n not in {*ROLES, ""}} != set(data.features.names):
        raise UnreadableError(f"features {data.features.names}")


def _slow_log(files: list[Path], data: unskew.Impressions) -> Counter[Any]:
    rows = read_rows(files)
    check_feature_names(rows, data)
    return sessions(rows, data.features.names, frozenset(data.features.categories))


def attempt_log(sample: Path, case: int, place: Path) -> str | None:
    """One file of a log."""
    rng = np.random.default_rng([case, 1])
    file = place / f"log{ENDINGS[rng.integers(len(ENDINGS))]}"
    write_rows(damaged_rows(log_rows(rng), rng), file, rng)
    if file.suffix == ".parquet" and rng.random() < 0.2:
        file.write_bytes(mutated_bytes(file.read_bytes(), rng))
    data = unskew.read_log(file)
    try:
        return _compare(found_sessions(data), _slow_log([file], data))
    except UnreadableError as error:
        return f"read, but slowly: {error}"


def attempt_many(sample: Path, case: int, place: Path) -> str | None:
    """Several files of one log: a folder, a pattern or a list."""
    rng = np.random.default_rng([case, 2])
    rows, ending = log_rows(rng), (".csv", ".parquet")[case % 2]
    cuts = np.sort(rng.integers(0, len(rows) + 1, size=int(rng.integers(1, 3)))).tolist()
    files = []
    for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        part = rows[begin:end]
        if rng.random() < 0.3:
            names = [str(n) for n in rng.permutation(list(rows[0]))]
            part = [{name: row[name] for name in names} for row in part]
        if rng.random() < 0.3:
            part = damaged_rows(part, rng)
        if part:
            files.append(place / f"{len(files)}-{'B' if rng.random() < 0.2 else ''}{ending}")
            write_rows(part, files[-1], rng)
    if not files:
        return None
    given: Any = (str(place), str(place / f"*{ending}"), [str(f) for f in files])[case % 3]
    data = unskew.read_log(given)
    try:
        return _compare(found_sessions(data), _slow_log(sorted(files), data))
    except UnreadableError as error:
        return f"read, but slowly: {error}"


def attempt_features(sample: Path, case: int, place: Path) -> str | None:
    """A log and its table of features, which is damaged."""
    rng = np.random.default_rng([case, 3])
    log = log_rows(rng, features=False)
    keys = {(row["query"], row["doc"]) for row in log}
    table = [
        {"query": q, "doc": d, "x": k / 7, "n": k} for k, (q, d) in enumerate(sorted(keys, key=str))
    ]
    one, two = (
        place / f"{name}{ENDINGS[rng.integers(len(ENDINGS))]}" for name in ("log", "features")
    )
    write_rows(log, one, np.random.default_rng(5))
    write_rows(damaged_rows(table, rng), two, rng)
    data = unskew.read_log(one, features=two)
    try:
        names = data.features.names
        wanted = document_features(read_rows([two]), names)
        for k in range(data.n_documents):
            pair = (str(data.queries[data.documents.query[k]]), str(data.documents.doc[k]))
            values = data.features.values[k].tolist()
            shown = tuple("missing" if np.isnan(v) else repr(v + 0.0) for v in values)
            if wanted.get(pair) != shown:
                return f"{pair} has {shown}, slowly {wanted.get(pair)}"
        expected = sessions(read_rows([one]), [])
        found = found_sessions(data)
        bare: Counter[Any] = Counter()
        for session, count in found.items():
            bare[(*session[:3], tuple((*slot[:3], ()) for slot in session[3]))] += count
        return _compare(bare, expected)
    except UnreadableError as error:
        return f"read, but slowly: {error}"


# Labels -----------------------------------------------------------------------------------------


def attempt_labels(sample: Path, case: int, place: Path) -> str | None:
    """A table of labels, or LETOR text."""
    rng = np.random.default_rng([case, 4])
    if case % 3 == 0:
        return _attempt_letor(place, rng)
    rows = [
        {
            "relevance" if name == "click" else name: row[name]
            for name in ("query", "doc", "click", "x", "n")
        }
        for row in log_rows(rng)
    ]
    file = place / f"labels{ENDINGS[rng.integers(len(ENDINGS))]}"
    write_rows(damaged_rows(rows, rng), file, rng)
    data = unskew.read_labels(file)
    try:
        expected = Counter(
            (
                key(row["query"]), key(row["doc"]) if "doc" in row else None, number(row["relevance"]),
                tuple(number(row[f]) for f in data.features.names),
            )
            for row in read_rows([file])
        )  # fmt: skip
    except UnreadableError as error:
        return f"read, but slowly: {error}"
    named = any(pair[1] is not None for pair in expected)
    return _compare(_labelled(data, named=named), expected)


def _labelled(data: Any, *, named: bool) -> Counter[Any]:
    values = [tuple(None if np.isnan(v) else float(v) for v in row) for row in data.features.values]
    docs = [str(d) if named else None for d in data.doc.tolist()]
    return Counter(
        zip(map(str, data.query.tolist()), docs, data.relevance.tolist(), values, strict=True)
    )


LETOR = """2 qid:1 1:0.5 2:3 # docid = a
0 qid:1 1:1e-3 3:-2
1 qid:2 2:4
# a comment
0 qid:7 1:1 2:2 3:3
"""
STRANGE_TOKENS = (
    "", "qid:3", "9:1", "1:x", "0:1", "-1:1", "2000000000:1", "qid:99999999999999999999", "nan", "1:nan",
    "1:inf", "#", "\n", "1:1e400", "qid:x", "3", "-1", "1e400",
)  # fmt: skip


def _attempt_letor(place: Path, rng: np.random.Generator) -> str | None:
    file = place / "labels.txt"
    text = LETOR
    for _ in range(int(rng.integers(0, 3))):
        tokens = text.split(" ")
        at = int(rng.integers(len(tokens)))
        tokens[at] = STRANGE_TOKENS[rng.integers(len(STRANGE_TOKENS))]
        text = " ".join(tokens)
    raw = text.encode()
    file.write_bytes(mutated_bytes(raw, rng) if rng.random() < 0.3 else raw)
    data = unskew.read_labels(file)
    try:
        lines = letor_rows(file)
    except (UnreadableError, ValueError) as error:
        return f"read, but slowly: {error}"
    n = data.features.n_features
    if any(max(values, default=1) > n for _, _, values in lines):
        return f"{n} features"
    expected = Counter(
        (query, None, grade, tuple(_plain(values.get(k, 0.0)) for k in range(1, n + 1)))
        for grade, query, values in lines
    )
    return _compare(_labelled(data, named=False), expected)


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else value


# Candidates -------------------------------------------------------------------------------------


def prepare_candidates(folder: Path) -> None:
    """Two models, one of them with categories."""
    from fuzz.saved_folders import QUICK, small_log
    from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART
    from unskew.rankers.ranksvm.ranker import PropensityRankSVM

    log = small_log()
    UnbiasedLambdaMART(**QUICK, n_estimators=4, num_leaves=6, min_data_in_leaf=2).fit(log).save(
        folder / "lightgbm"
    )
    PropensityRankSVM(**QUICK, max_rounds=2).fit(log).save(folder / "ranksvm")


def attempt_candidates(sample: Path, case: int, place: Path) -> str | None:
    """A table of candidates, ranked by `unskew rank`."""
    from fuzz.samples import run_command

    rng = np.random.default_rng([case, 5])
    make = [IDS[k] for k in rng.integers(len(IDS), size=2)]
    rows = [
        {
            "query": make[0](int(rng.integers(4))), "doc": make[1](k), "price": float(rng.normal()),
            "age": None if rng.random() < 0.1 else float(rng.normal()),
            "colour": ("r", "g", "b", "new")[rng.integers(4)],
        }
        for k in range(int(rng.integers(1, 15)))
    ]  # fmt: skip
    file = place / f"candidates{ENDINGS[rng.integers(len(ENDINGS))]}"
    write_rows(damaged_rows(rows, rng), file, rng)
    run_command("rank", sample, file, "-o", place / "ranked.parquet", "--threads", "1")
    ranked = pq.read_table(place / "ranked.parquet").to_pylist()
    try:
        rows = read_rows([file])
        model = unskew.load(sample)
        names = model.feature_names_
        known = {
            name: {text: k for k, text in enumerate(of)} for name, of in model.categories_.items()
        }
        cells = [
            [known[n].get(str(row[n])) if n in known else number(row[n]) for n in names]
            for row in rows
        ]
        matrix = np.array(cells, dtype=np.float64).reshape(len(rows), len(names))
        score = model._predict(matrix).tolist() if rows else []
        expected = Counter(
            (_exact(row["query"]), _exact(row["doc"]), round(s, 9))
            for row, s in zip(rows, score, strict=True)
        )
    except UnreadableError as error:
        return f"read, but slowly: {error}"
    found = Counter((_exact(r["query"]), _exact(r["doc"]), round(r["score"], 9)) for r in ranked)
    by_query: dict[str, list[Any]] = {}
    for row in ranked:
        by_query.setdefault(_exact(row["query"]), []).append(row)
    for part in by_query.values():
        if [row["rank"] for row in part] != list(range(1, len(part) + 1)):
            return f"ranks {[row['rank'] for row in part]}"
        if sorted((row["score"] for row in part), reverse=True) != [row["score"] for row in part]:
            return "the scores do not fall"
    return _compare(found, expected)


def _exact(value: Any) -> str:
    if value is None:
        raise UnreadableError("an id is missing")
    return str(value)


def _nothing(folder: Path) -> None:
    """Cases make their own files."""


KINDS = (
    Kind("logs", ("log",), _nothing, attempt_log),
    Kind("logs of many files", ("log",), _nothing, attempt_many),
    Kind("features", ("log",), _nothing, attempt_features),
    Kind("labels", ("labels",), _nothing, attempt_labels),
    Kind("candidates", ("lightgbm", "ranksvm"), prepare_candidates, attempt_candidates),
)

if __name__ == "__main__":
    main(KINDS)
