"""Mutants that `mutants` draws and no test can notice, each with the reason."""

from __future__ import annotations

# Mutants that change nothing that can be seen: the module, the line as it stands, what is changed
# there into what, and the reason.
EQUIVALENT: dict[tuple[str, str, str, str], str] = {
    ("log/attach.py", "doc = documents.doc[missing[:1]].tolist()[0]", "1", "2"):
        "only the first of the rows taken is looked at",
    ("log/attach.py", "problems = [self._problem(*found, columns) for found in "
     "self.found.found(n_sessions=0)]", "0", "1"):
        "rows of features have no positions, whose count alone it decides",
    ("log/sessions.py",
     "if self.seen.n < 0 or (self.spill and self.seen.entries.nbytes > self.spill.limit):",
     "self.seen.n < 0", "self.seen.n <= 0"):
        "a batch has a session, so that the number is never 0",
    ("log/keys.py", "return np.asarray(_filled(keys, 0).to_numpy(zero_copy_only=False)).astype(",
     "0", "1"): "a null gets an arbitrary code",
    ("log/sessions.py", "runs = len(self._closed) + len(breaks) - 2", "2", "3"):
        "when another order is tried; what is read is the same",
    ("log/sources/table.py", "return dict(batch.slice(0, 1).to_pylist()[0])", "1", "2"):
        "only the first of the rows taken is looked at",
    ("evaluation/significance.py", "step = max(1, _BLOCK // n)", "_BLOCK // n", "_BLOCK * n"):
        "one block of more memory with the same numbers",
    ("evaluation/significance.py", "return 1.0 if difference[0] == 0 else 0.0", "0", "1"):
        "all differences are alike, the second too; the comparison with 1 is noticed",
    ("evaluation/metrics.py",
     "ideal = value[rank_queries(value, ranked.offsets, split_ties=True).order]", "True", "False"):
        "rows that tie in value are alike, in whatever order",
    ("log/letor.py", "return 2**63", "2", "3"): "no limit: both are more than any file needs",
    ("log/letor.py", "return 2**63", "63", "64"): "no limit: both are more than any file needs",
    ("log/sessions.py",
     'keys = keys.fill_null(0 if pa.types.is_integer(keys.type) else "")', "0", "1"):
        "a session that is null is refused, whatever stands for it until then",
    ("log/sources/parquet.py",
     "if max(abs(least or 0), abs(most or 0)) > EXACT_IN_DOUBLE:", "0", "1"):
        "of a column without a value; neither number is beyond 2^53",
    ("rankers/inputs.py",
     "blocks = (values[start : start + 1024] for start in range(0, len(values), 1024))",
     "1024", "1025"): "blocks that overlap by a row; the other 1024, the step, is noticed",
    ("bias/shuffling.py", "uniform = (size**2 - 1) / 12", "12", "13"):
        "it scales both sides of a ratio",
    ("bias/shuffling.py", "key = document * (int(length.max()) + 1) + length",
     "document * (int(length.max()) + 1) + length", "document * (int(length.max()) + 1) - length"):
        "as good a key: no two pairs of document and length share it",
    ("bias/randomization.py",
     "page = data.pages.query.astype(np.int64) * (int(length.max()) + 1) + length",
     "data.pages.query.astype(np.int64) * (int(length.max()) + 1) + length",
     "data.pages.query.astype(np.int64) * (int(length.max()) + 1) - length"):
        "as good a key: no two pairs of query and length share it",
    ("bias/randomization.py", "if np.abs(value - before).max() < _TOLERANCE:", "value - before",
     "value + before"): "it goes on to the last round and stays where it was",
    ("evaluation/counterfactual.py", "value, scale = value / whole, scale / whole", "scale / whole",
     "scale * whole"): "only shares of the scale are used",
    ("evaluation/significance.py",
     "rng.integers(0, 256, size=(size, (n + 7) // 8), dtype=np.uint8), axis=1, count=n",
     "(n + 7) // 8", "(n + 7) * 8"): "more random bits are drawn than are used",
    ("evaluation/significance.py",
     "rng.integers(0, 256, size=(size, (n + 7) // 8), dtype=np.uint8), axis=1, count=n",
     "7", "8"): "more random bits are drawn than are used",
    ("bias/harvesting.py", "theta = np.where(own > 0, 1.0, 0.0)", "1.0", "2.0"):
        "where iterations begin; they end at the same maximum",
    ("bias/harvesting.py", "theta = np.where(own > 0, 1.0, 0.0)", "own > 0", "own >= 0"):
        "where iterations begin; they end at the same maximum",
    ("bias/harvesting.py", "theta = np.where(own > 0, 1.0, 0.0)", "0.0", "1.0"):
        "where iterations begin; they end at the same maximum",
}  # fmt: skip
