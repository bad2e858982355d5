"""Record what Unskew computes for fixed seeds, as hashes: a check that a rebuild changes nothing.

    python tests/behaviour/record.py             compare with hashes.json, say what differs
    python tests/behaviour/record.py --write     replace hashes.json

Every ranker, method, booster, click model, logging policy, kind of input and command with JSON is
in it, through the public names and the command line alone, so that it outlives any rebuilding.
Floating-point results depend on the processor and on the versions of the libraries: compare on the
machine that wrote the hashes, and write them anew before a rebuild.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from typer.testing import CliRunner

import unskew
from unskew.cli import app

HASHES = Path(__file__).with_name("hashes.json")
ROUNDS = 8
# The paper's leaves: without a word the number follows the size of the log.
TREES: dict[str, Any] = {"n_estimators": ROUNDS, "num_leaves": 31}


def digest(*values: Any) -> str:
    """One hash of arrays, texts and plain values."""
    found = hashlib.sha256()
    for value in values:
        if isinstance(value, bytes):
            found.update(value)
        elif isinstance(value, np.ndarray) and value.dtype != object:
            found.update(str(value.dtype).encode() + np.ascontiguousarray(value).tobytes())
        else:
            content = value.tolist() if isinstance(value, np.ndarray) else value
            found.update(json.dumps(content, sort_keys=True, default=str).encode())
    return found.hexdigest()[:20]


def labelled(n_queries: int = 60) -> unskew.LabelledData:
    """Graded documents of a generated world, with gaps in one feature."""
    data = unskew.datasets.make_search_dataset(n_queries=n_queries, n_features=16, seed=3)
    data.features.values[::17, 2] = np.nan
    return data


def make_log(folder: Path) -> tuple[pa.Table, pa.Table]:
    """A simulated log and its features; a third of the sessions is shuffled."""
    data = labelled()
    policy = unskew.simulate.rank_svm_policy(data, seed=3, share=0.2)
    policy = unskew.simulate.epsilon_policy(policy, 0.3, shuffle="page")
    model = unskew.simulate.click_model("pbm")
    log = unskew.simulate.sample(data, model=model, policy=policy, sessions=3_000, seed=3)
    from_values = pa.table(
        {
            "query": data.query,
            "doc": data.doc,
            **{name: data.features.values[:, k] for k, name in enumerate(data.features.names)},
        }
    )
    pq.write_table(log, folder / "log.parquet")
    pq.write_table(from_values, folder / "features.parquet")
    labels = from_values.append_column("relevance", pa.array(data.relevance))
    pq.write_table(labels, folder / "labels.parquet")
    return log, from_values


def impressions_parts(data: unskew.Impressions) -> list[Any]:
    """Everything Impressions hold."""
    documents, pages, patterns = data.documents, data.pages, data.patterns
    return [
        data.queries, data.contexts, documents.query, documents.doc, documents.features.values,
        list(documents.features.names), dict(documents.features.categories), pages.query,
        pages.offsets, pages.document, pages.position, patterns.page, patterns.context,
        patterns.weight, patterns.count, patterns.offsets, patterns.slot, patterns.grade,
    ]  # fmt: skip


def bias_parts(bias: unskew.PositionBias) -> list[Any]:
    """Both curves and what is known of them."""
    return [bias.t_plus, bias.t_minus, list(bias.clipped_positions), list(bias.borrowed_positions)]


def ranker_parts(ranker: Any, X: Any) -> list[Any]:
    """What a fitted ranker is: scores, biases, and the model itself."""
    parts = [ranker.predict(X), *bias_parts(ranker.position_bias_)]
    parts += [ranker.bias_history_.t_plus, ranker.bias_history_.t_minus]
    parts += [list(getattr(ranker, "validation_history_", []))]
    with tempfile.TemporaryDirectory() as folder:
        ranker.save(Path(folder) / "m")
        again = unskew.load(Path(folder) / "m")
        if not np.array_equal(again.predict(X), parts[0]):
            raise SystemExit("a saved ranker scores otherwise than the one that was saved")
        for file in sorted((Path(folder) / "m").iterdir()):
            if file.name in {"model.txt", "model.json"} and hasattr(ranker, "trees_"):
                parts.append(file.read_bytes())
    if hasattr(ranker, "coef_"):
        parts += [ranker.coef_, ranker.objective_]
    return parts


def inputs(log: pa.Table, features: pa.Table, folder: Path) -> Iterator[tuple[str, list[Any]]]:
    """The same log read from every kind of source."""
    joined = log.join(features, ["query", "doc"]).sort_by(
        [("session", "ascending"), ("position", "ascending")]
    )
    pq.write_table(joined, folder / "joined.parquet")
    frame = joined.to_pandas()
    frame.to_csv(folder / "joined.csv", index=False)
    import duckdb
    import polars

    database = folder / "log.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.register("joined", joined)
        connection.execute("CREATE TABLE clicks AS FROM joined")
    shuffled = np.random.default_rng(0).permutation(len(joined))
    sources: dict[str, Callable[[], unskew.Impressions]] = {
        "parquet": lambda: unskew.read_log(folder / "joined.parquet"),
        "csv": lambda: unskew.read_log(folder / "joined.csv"),
        "arrow": lambda: unskew.read_log(joined),
        "stream": lambda: unskew.read_log(joined.to_reader()),
        "pandas": lambda: unskew.read_log(frame),
        "polars": lambda: unskew.read_log(polars.from_arrow(joined)),
        "database": lambda: unskew.read_log(database, table="clicks"),
        "two tables": lambda: unskew.read_log(log, features=features),
        "context": lambda: unskew.read_log(log, features=features, context="context"),
        "scattered": lambda: unskew.read_log(joined.take(shuffled)),
        "arrays": lambda: unskew.Impressions.from_arrays(
            frame[list(features.column_names[2:])], frame["click"], session=frame["session"],
            query=frame["query"], doc=frame["doc"], position=frame["position"],
        ),
        "arrays without doc": lambda: unskew.Impressions.from_arrays(
            frame[list(features.column_names[2:])].to_numpy(), frame["click"],
            session=frame["session"].astype(str), query=frame["query"].astype(str),
            position=frame["position"],
        ),
    }  # fmt: skip
    if "context" not in log.column_names:
        del sources["context"]
    for name, read in sources.items():
        yield f"input: {name}", impressions_parts(read())


def rankers(
    data: unskew.Impressions, labels: unskew.LabelledData
) -> Iterator[tuple[str, list[Any]]]:
    """Every ranker with every treatment of clicks and every booster."""
    X = labels.features
    common: dict[str, Any] = {"random_state": 5, "n_jobs": 1, "verbose": 0}
    propensities = 1.0 / np.arange(1, data.max_position + 1)
    treatments: dict[str, Any] = {
        name: name for name in ("pairwise", "clicked", "regression-em", "table-em", "relative-ctr")
    } | {"none": None, "propensities": propensities}
    for booster in ("lightgbm", "xgboost"):
        for name, debias in treatments.items():
            for p in (0.0, 0.5) if name == "pairwise" else (0.5,):
                ranker = unskew.UnbiasedLambdaMART(
                    **TREES, debias=debias, p=p, booster=booster, **common
                )
                yield f"lambdamart {booster} {name} p={p}", ranker_parts(ranker.fit(data), X)
        ranker = unskew.UnbiasedLambdaMART(**TREES, booster=booster, **common)
        yield f"lambdamart {booster} labels", ranker_parts(ranker.fit_labels(labels), X)
        for kind, held_out in (("labels", labels), ("clicks", data)):
            ranker = unskew.UnbiasedLambdaMART(
                **TREES,
                booster=booster,
                early_stopping_rounds=3,
                n_positions=6,
                **common,
            )
            ranker.fit(data, validation=held_out)
            yield f"lambdamart {booster} validation {kind}", ranker_parts(ranker, X)
        more = unskew.UnbiasedLambdaMART(**TREES, booster=booster, **common)
        more.fit(data, init_model=ranker)
        yield f"lambdamart {booster} continued", ranker_parts(more, X)
    for name in ("pairwise", "clicked", "relative-ctr", "none"):
        svm = unskew.PropensityRankSVM(debias=treatments[name], max_rounds=3, **common)
        yield f"ranksvm {name}", ranker_parts(svm.fit(data), X)
    svm = unskew.PropensityRankSVM(**common)
    yield "ranksvm labels", ranker_parts(svm.fit_labels(labels), X)
    for name in ("pairwise", "clicked", "dual-learning", "relative-ctr", "none"):
        for loss in ("auto", "pairwise") if name in {"none", "relative-ctr"} else ("auto",):
            net = unskew.NeuralRanker(
                debias=None if name == "none" else name,
                hidden=(16, 8),
                n_epochs=3,
                loss=loss,
                **common,
            )
            yield f"dnn {name} {loss}", ranker_parts(net.fit(data), X)
    net = unskew.NeuralRanker(hidden=(16, 8), n_epochs=4, early_stopping_rounds=2, **common)
    yield "dnn validation", ranker_parts(net.fit(data, validation=labels), X)
    yield (
        "dnn labels",
        ranker_parts(
            unskew.NeuralRanker(hidden=(16, 8), n_epochs=3, **common).fit_labels(labels), X
        ),
    )


def biases(data: unskew.Impressions) -> Iterator[tuple[str, list[Any]]]:
    """Every estimator alone."""
    shuffled = unskew.bias.Randomization(check=False)
    constant = np.zeros(len(data.documents))
    estimators: dict[str, Any] = {
        "relative-ctr": unskew.bias.RelativeCTR(),
        "regression-em": unskew.bias.RegressionEM(n_jobs=1),
        "table-em": unskew.bias.RegressionEM(relevance="table"),
        "randomization": shuffled,
        "pairwise": unskew.bias.PairwiseDebiasing(scores=constant),
        "pairwise, six positions": unskew.bias.PairwiseDebiasing(
            scores=constant, n_positions=6, p=0.0
        ),
        "dual-learning": unskew.bias.DualLearning(hidden=(8,), n_epochs=2, n_jobs=1, check=False),
    }
    for name, estimator in estimators.items():
        yield f"bias {name}", bias_parts(estimator.fit(data))


def simulations() -> Iterator[tuple[str, list[Any]]]:
    """Every click model and logging policy."""
    data = labelled(30)
    for name in unskew.simulate.CLICK_MODELS:
        model = unskew.simulate.click_model(name)
        policy = unskew.simulate.rank_svm_policy(data, seed=1, share=0.3)
        log = unskew.simulate.sample(data, model=model, policy=policy, sessions=2_000, seed=1)
        truth = unskew.simulate.true_propensities(log)
        columns = [log[column].to_pylist() for column in log.column_names]
        yield f"simulate {name}", [log.column_names, *columns, truth.mean]
    for name in ("random", "drifting", "labels", "ranksvm"):
        yield f"simulate policy {name}", [command("simulate", "generated", "--policy", name)]


def command(*arguments: str) -> Any:
    """What a command writes: the JSON of its output, and the tables it leaves."""
    if arguments[0] == "simulate":
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "log.parquet"
            _run([*arguments, "-o", str(out), "--sessions", "400", "--queries", "40"])
            tables = [
                pq.read_table(file).to_pydict() for file in sorted(Path(folder).glob("*.parquet"))
            ]
            truth = json.loads((Path(folder) / "log.propensities.json").read_text())
            return [tables, truth]
    return _without_times(json.loads(_run([*arguments, "--json"])))


def _run(arguments: list[str]) -> str:
    result = CliRunner().invoke(app, arguments)
    if result.exit_code:
        raise SystemExit(f"unskew {' '.join(arguments)}: {result.output} {result.exception!r}")
    return result.stdout


def _without_times(content: Any) -> Any:
    if isinstance(content, dict):
        return {k: _without_times(v) for k, v in content.items() if k not in {"seconds", "source"}}
    return [_without_times(one) for one in content] if isinstance(content, list) else content


def commands(folder: Path) -> Iterator[tuple[str, list[Any]]]:
    """The JSON of every command that prints it, and the models that `train` writes."""
    log, features = str(folder / "log.parquet"), str(folder / "features.parquet")
    read = [log, "--features", features]
    compacted = str(folder / "compacted")
    _run(["compact", *read, "-o", compacted, "--quiet"])
    yield "compact", impressions_parts(unskew.load(compacted))
    yield "inspect", [command("inspect", *read, "--quiet")]
    yield "inspect compacted", [command("inspect", compacted)]
    methods = [word for m in ("relative-ctr", "pairwise", "table-em") for word in ("--method", m)]
    yield "bias command", [command("bias", *read, *methods, "--quiet")]
    for name, source in (("raw", read), ("compacted", [compacted])):
        model = str(folder / f"model {name}")
        _run(
            [
                "train",
                *source,
                "-o",
                model,
                "--n-estimators",
                "8",
                "--num-leaves",
                "31",
                "--random-state",
                "1",
                "--quiet",
            ]
        )
        ranker = unskew.load(model)
        yield f"train {name}", ranker_parts(ranker, labelled().features)
    labels = str(folder / "labels.parquet")
    model = str(folder / "model raw")
    yield (
        "evaluate labels",
        [
            command(
                "evaluate",
                model,
                "--labels",
                labels,
                "--score",
                "view_1",
                "--metrics",
                "ndcg@5,map,err@10",
            )
        ],
    )
    yield "evaluate log", [command("evaluate", model, "--log", log, "--features", features)]
    ranked = folder / "ranked.parquet"
    _run(["rank", model, labels, "-o", str(ranked)])
    yield "rank", [pq.read_table(ranked).to_pydict()]


def everything() -> Iterator[tuple[str, list[Any]]]:
    """Each thing that is recorded, by name."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log, features = make_log(folder)
        yield from inputs(log, features, folder)
        data = unskew.read_log(log, features=features)
        yield from biases(data)
        yield from rankers(data, labelled())
        yield from simulations()
        yield from commands(folder)


def main() -> None:
    """Compare or write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="replace the recorded hashes")
    write = parser.parse_args().write
    warnings.simplefilter("ignore")
    known: dict[str, str] = {} if write else json.loads(HASHES.read_text())
    found: dict[str, str] = {}
    for name, parts in everything():
        found[name] = digest(*parts)
        state = "" if write else ("same" if known.get(name) == found[name] else "DIFFERENT")
        sys.stdout.write(f"{state:<10}{name}\n")
        sys.stdout.flush()
    if write:
        HASHES.write_text(json.dumps(found, indent=1) + "\n")
        return
    missing = sorted(set(known) - set(found))
    different = [name for name in found if known.get(name) != found[name]]
    sys.stdout.write(f"{len(found)} recorded, {len(different)} different, {len(missing)} missing\n")
    sys.exit(bool(different or missing))


if __name__ == "__main__":
    main()
