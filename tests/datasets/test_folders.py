"""Dataset folders: every official layout, plain or gzipped, and the errors for the others."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from unskew.datasets import DATASETS, read_dataset
from unskew.datasets.folders import LAYOUTS
from unskew.errors import DataError, UsageError


def write(path, query, *, grade=1, features=2, zipped=False):
    """A LETOR file with two documents of one query."""
    path.parent.mkdir(parents=True, exist_ok=True)
    row = " ".join(f"{i + 1}:{i + 0.5}" for i in range(features))
    text = f"{grade} qid:{query} {row} #docid = a\n0 qid:{query} {row} #docid = b\n"
    if zipped:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)


def fill(root, layout, *, zipped=False, **options):
    """All files of a layout; each file has a query of its own."""
    files = sorted({file for fold in layout.folds for file in layout.expected(fold)})
    for number, file in enumerate(files, start=1):
        write(root / file, number, zipped=zipped, **options)
    return {file: number for number, file in enumerate(files, start=1)}


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_layouts(tmp_path, layout, zipped):
    """Every fold of every layout is read from the right files, plain or gzipped."""
    query_of = fill(tmp_path, layout, zipped=zipped)
    for fold, parts in layout.folds.items():
        found = read_dataset(tmp_path, fold=fold)
        for part, files in parts.items():
            data = getattr(found, part)
            if not files:
                assert data is None
            else:
                queries = [query_of[file] for file in files]
                assert list(dict.fromkeys(int(q) for q in data.query)) == queries
                assert len(data) == 2 * len(files)
        assert found.fold == fold
        assert found.max_grade == 1


@pytest.mark.parametrize("name", list(DATASETS))
def test_by_name(tmp_path, name):
    """A named dataset has its own number of features and its own highest grade."""
    source = DATASETS[name]
    layout = next(layout for layout in LAYOUTS if layout.name == source.layouts[0])
    fill(tmp_path, layout)
    found = read_dataset(tmp_path, name=name)
    assert found.train.features.n_features == source.n_features
    assert found.max_grade == source.max_grade


def test_narrow_files_are_widened(tmp_path):
    """A file whose last features never occur gets them as zeros, like the rest of the fold."""
    layout = LAYOUTS[4]
    fill(tmp_path, layout)
    write(tmp_path / "test.txt", 9, features=4)
    found = read_dataset(tmp_path)
    assert found.train.features.names == found.test.features.names
    assert found.train.features.values[:, 2:].tolist() == [[0, 0], [0, 0]]


class TestErrors:
    """A folder in the wrong layout."""

    def test_says_what_was_expected(self, tmp_path):
        """An unknown layout is an error that names the files expected and those found."""
        (tmp_path / "clicks.parquet").touch()
        with pytest.raises(DataError, match=r"expected Fold1/train.txt.*found clicks.parquet"):
            read_dataset(tmp_path)

    def test_empty_folder(self, tmp_path):
        """An empty folder says so."""
        with pytest.raises(DataError, match="an empty folder"):
            read_dataset(tmp_path, name="yahoo-set1")

    def test_one_file_missing(self, tmp_path):
        """When only one file is missing, that one is named."""
        fill(tmp_path, LAYOUTS[1])
        (tmp_path / "S4.txt").unlink()
        with pytest.raises(DataError, match=r"'five parts', but fold 1 misses S4.txt"):
            read_dataset(tmp_path)

    def test_no_folder(self, tmp_path):
        """Something that is no folder is refused."""
        with pytest.raises(DataError, match="is not a folder"):
            read_dataset(tmp_path / "absent")

    def test_names_and_folds(self, tmp_path):
        """Unknown names and folds are refused."""
        with pytest.raises(UsageError, match="dataset 'mslr' is not known: choose among"):
            read_dataset(tmp_path, name="mslr")
        with pytest.raises(UsageError, match="fold must lie between 1 and 1"):
            read_dataset(tmp_path, name="yahoo-set1", fold=2)

    def test_grade_beyond_maximum(self, tmp_path):
        """A grade that the named dataset cannot have is refused."""
        fill(tmp_path, LAYOUTS[1], grade=4)
        with pytest.raises(DataError, match="has a grade of 4, but the dataset's highest is 2"):
            read_dataset(tmp_path, name="mq2008")

    def test_too_many_features(self, tmp_path):
        """More features than the named dataset has are refused."""
        fill(tmp_path, LAYOUTS[1], features=47)
        with pytest.raises(DataError, match="47"):
            read_dataset(tmp_path, name="mq2008")


def test_mq2008(real_data):
    """The real MQ2008: 784 queries in five folds that never share a query."""
    folds = [read_dataset(real_data / "mq2008", name="mq2008", fold=k) for k in range(1, 6)]
    parts = [(f.train, f.validation, f.test) for f in folds]
    assert [sum(p.n_queries for p in three) for three in parts] == [784] * 5
    assert {sum(len(p) for p in three) for three in parts} == {15_211}
    tested = np.concatenate([np.unique(three[2].query) for three in parts])
    assert len(tested) == len(set(tested.tolist())) == 784
