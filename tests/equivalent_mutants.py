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
    ("log/attach.py",
     "key = np.where((query < 0) | (doc < 0) | null, -1, query * len(self.docs) + doc)", "1", "2"):
        "a number that no document has, either way",
    ("log/sessions.py",
     "if self.seen.n < 0 or (self.spill and self.seen.entries.nbytes > self.spill.limit):",
     "self.seen.n < 0", "self.seen.n <= 0"):
        "a batch has a session, so that the number is never 0",
    ("log/keys.py", "return np.asarray(_filled(keys, 0)).astype(np.int64, copy=False)", "0", "1"):
        "a null gets an arbitrary code",
    ("log/keys.py", "return np.asarray(_filled(keys, 0)).view(np.int64)", "0", "1"):
        "a null gets an arbitrary code",
    ("log/keys.py", "return 160 * len(self._codes)", "160", "161"):
        "about what a text takes, either way",
    ("log/coding.py", "column = column.fill_null(1)", "1", "2"):
        "a null is reported and its session left out, whatever stands for it until then",
    ("log/coding.py", "values = np.where(fractional, 1, values)", "1", "2"):
        "it is reported and its session left out, whatever stands for it until then",
    ("log/problems.py", "return cls(np.zeros(len(Kind), dtype=np.int64), "
     "np.full(len(Kind), -1, dtype=np.int64))", "1", "2"): "any row below 0 says that there is none",
    ("log/problems.py", "other.first_row[:] = -1", "1", "2"):
        "any row below 0 says that there is none",
    ("log/problems.py", "if self.first_row[kind] < 0 or first < self.first_row[kind]:",
     "first < self.first_row[kind]", "first <= self.first_row[kind]"): "the same row once more",
    ("log/problems.py", "if self.first_row[kind] < 0 or row < self.first_row[kind]:",
     "row < self.first_row[kind]", "row <= self.first_row[kind]"): "the same row once more",
    ("log/sources/table.py", "return dict(batch.slice(0, 1).to_pylist()[0])", "1", "2"):
        "only the first of the rows taken is looked at",
    ("evaluation/metrics.py",
     "return sums(self.query, np.where(self.rank <= k, values, 0.0), len(self.offsets) - 1)", "1", "2"):
        "the least length of the sums; every query has a row, the last one too",
    ("evaluation/significance.py",
     'method="percentile", vectorized=True, batch=max(1, _BLOCK // len(counted)),', "True", "False"):
        "the mean of one resample after the other is the same",
    ("evaluation/significance.py",
     'method="percentile", vectorized=True, batch=max(1, _BLOCK // len(counted)),', "1", "2"):
        "blocks of another size with the same numbers",
    ("evaluation/significance.py",
     'method="percentile", vectorized=True, batch=max(1, _BLOCK // len(counted)),',
     "_BLOCK // len(counted)", "_BLOCK * len(counted)"):
        "blocks of another size with the same numbers",
    ("evaluation/significance.py", "step = max(1, _BLOCK // n)", "1", "2"):
        "blocks of another size, of more queries than there are anywhere",
    ("evaluation/significance.py", "step = max(1, _BLOCK // n)", "_BLOCK // n", "_BLOCK * n"):
        "one block of more memory with the same numbers",
    ("evaluation/significance.py", "return 1.0 if difference[0] == 0 else 0.0", "0", "1"):
        "all differences are alike, the second too; the comparison with 1 is noticed",
    ("evaluation/metrics.py",
     "first = np.append(True, score[order[1:]] != score[order[:-1]]) | split_ties", "True", "False"):
        "the first row of every query is marked in the next line",
    ("evaluation/metrics.py",
     "ideal = value[rank_queries(value, ranked.offsets, split_ties=True).order]", "True", "False"):
        "rows that tie in value are alike, in whatever order",
    ("log/arrays.py", "in_order = bool((order[1:] > order[:-1]).all())", "order[1:] > order[:-1]",
     "order[1:] >= order[:-1]"): "no two rows have one number",
    ("log/letor.py",
     '_DOCID.search(line, line.find(b"#")) if docs is not None and b"#" in line else None',
     "docs is not None and b'#' in line", "docs is not None or b'#' in line"):
        "a line without a comment has no docid, and after one without a docid none is kept",
    ("log/columns.py", "if coder is not None and column.null_count:",
     "coder is not None and column.null_count", "coder is not None or column.null_count"):
        "without a null no row is set, and the null of a number is NaN already",
    ("log/letor.py", "words = line.split(None, 2)", "2", "3"):
        "only the first two words are looked at",
    ("log/letor.py", "return 0, 0", "0", "1"):
        "of the second: where no line has such a feature, its number is not told; the first is noticed",
    ("log/letor.py", "return 2**63", "2", "3"): "no limit: both are more than any file needs",
    ("log/letor.py", "return 2**63", "63", "64"): "no limit: both are more than any file needs",
    ("log/sessions.py",
     'keys = keys.fill_null(0 if pa.types.is_integer(keys.type) else "")', "0", "1"):
        "a session that is null is refused, whatever stands for it until then",
    ("log/sources/parquet.py",
     "if max(abs(least or 0), abs(most or 0)) > EXACT_IN_DOUBLE:", "0", "1"):
        "of a column without a value; neither number is beyond 2^53",
    ("log/sources/csv_text.py",
     "return 0 if line.count('\"') % 2 else len(next(csv.reader([line], delimiter=delimiter)))",
     "0", "1"): "neither is more fields than a header has",
    ("log/sources/files.py", "if len(paths) > 1:", "len(paths) > 1", "len(paths) >= 1"):
        "the files of one path are different ones anyway",
    ("log/sessions.py",
     "if self.seen.n < 0 or (self.spill and self.seen.entries.nbytes > self.spill.limit):", "0", "1"):
        "a batch has a session, so that the number is never 0",
    ("log/sessions.py",
     "if self.seen.n < 0 or (self.spill and self.seen.entries.nbytes > self.spill.limit):",
     "self.seen.entries.nbytes > self.spill.limit", "self.seen.entries.nbytes >= self.spill.limit"):
        "when the log is sorted instead; what is read is the same",
    ("log/sessions.py", "if self.spill is not None and self.coder.n_bytes > self.spill.limit:",
     "self.coder.n_bytes > self.spill.limit", "self.coder.n_bytes >= self.spill.limit"):
        "when a piece is written; what is read is the same",
    ("rankers/inputs.py",
     "blocks = (values[start : start + 1024] for start in range(0, len(values), 1024))",
     "1024", "1025"): "blocks that overlap by a row; the other 1024, the step, is noticed",
    ("rankers/inputs.py",
     "blocks = (values[start : start + 1024] for start in range(0, len(values), 1024))", "0", "1"):
        "the first row is what the others are compared with",
    ("rankers/inputs.py", "if not any(_differs(block, values[0]) for block in blocks):", "0", "1"):
        "any row will do to compare the others with, and there are two",
    ("evaluation/counterfactual.py",
     "shift, drawn = self.shift - self.shift.mean(), self.drawn - self.drawn.mean()",
     "self.shift - self.shift.mean()", "self.shift + self.shift.mean()"):
        "a constant drops out of the product with what has the mean 0, and of a standard deviation",
    ("evaluation/counterfactual.py", "used = (best > 0) & (view.sessions > 0)", "view.sessions > 0",
     "view.sessions >= 0"): "documents that were not shown count 0, and the best order of them too",
    ("bias/shuffling.py", "uniform = (size**2 - 1) / 12", "12", "13"):
        "it scales both sides of a ratio",
    ("bias/shuffling.py", "uniform = (size**2 - 1) / 12", "(size ** 2 - 1) / 12",
     "(size ** 2 - 1) * 12"): "it scales both sides of a ratio",
    ("bias/shuffling.py", "if not (scale > 0 and expected > 0):", "expected > 0", "expected >= 0"):
        "where the scale is above 0, a page has two results and the other sum is above 0 too",
    ("bias/shuffling.py", "key = document * (int(length.max()) + 1) + length", "1", "2"):
        "as good a key: no two pairs of document and length share it",
    ("bias/shuffling.py", "key = document * (int(length.max()) + 1) + length",
     "document * (int(length.max()) + 1) + length", "document * (int(length.max()) + 1) - length"):
        "as good a key: no two pairs of document and length share it",
    ("bias/randomization.py",
     "page = data.pages.query.astype(np.int64) * (int(length.max()) + 1) + length",
     "data.pages.query.astype(np.int64) * (int(length.max()) + 1) + length",
     "data.pages.query.astype(np.int64) * (int(length.max()) + 1) - length"):
        "as good a key: no two pairs of query and length share it",
    ("bias/randomization.py",
     "page = data.pages.query.astype(np.int64) * (int(length.max()) + 1) + length", "1", "2"):
        "as good a key: no two pairs of query and length share it",
    ("bias/estimator.py", "curve[k] = minimum if value[k] < value[top] else MAXIMUM",
     "value[k] < value[top]", "value[k] <= value[top]"):
        "a value like the topmost lies within the limits and is not clipped",
    ("bias/randomization.py", "if np.abs(value - before).max() < _TOLERANCE:",
     "np.abs(value - before).max() < _TOLERANCE", "np.abs(value - before).max() <= _TOLERANCE"):
        "a change of exactly the tolerance, and one round more",
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
    ("bias/harvesting.py", "starts = np.searchsorted(cells.group, np.arange(cells.n_groups + 1))",
     "1", "2"): "one more group, which is empty",
    ("bias/harvesting.py", "if np.abs(theta - before).max() < _TOLERANCE:",
     "np.abs(theta - before).max() < _TOLERANCE", "np.abs(theta - before).max() <= _TOLERANCE"):
        "a change of exactly the tolerance, and one round more",
    ("bias/harvesting.py", "if np.abs(theta - before).max() < _TOLERANCE:", "theta - before",
     "theta + before"): "it goes on to the last round and stays where it was",
    ("bias/harvesting.py", "theta = np.where(own > 0, 1.0, 0.0)", "1.0", "2.0"):
        "where iterations begin; they end at the same maximum",
    ("bias/harvesting.py", "theta = np.where(own > 0, 1.0, 0.0)", "own > 0", "own >= 0"):
        "where iterations begin; they end at the same maximum",
    ("bias/harvesting.py", "theta = np.where(own > 0, 1.0, 0.0)", "0.0", "1.0"):
        "where iterations begin; they end at the same maximum",
}  # fmt: skip
