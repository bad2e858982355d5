"""Labelled data from files, folders and the generator: names, folds, parts."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from unskew.datasets import make_search_dataset
from unskew.datasets.opening import EIGHTHS, TENTHS, GeneratedSize, open_labelled
from unskew.errors import DataError

SIZE = GeneratedSize(40, 16, 8.0)


def write_letor(path, data):
    """Labelled data as a gzipped LETOR file."""
    with gzip.open(path, "wt") as file:
        for grade, query, row in zip(data.relevance, data.query, data.features.values, strict=True):
            values = " ".join(f"{k}:{value:.6g}" for k, value in enumerate(row, start=1))
            file.write(f"{int(grade)} qid:{query} {values}\n")


def queries(data):
    """The queries of labelled data."""
    return set(data.query.tolist())


@pytest.mark.parametrize(("split", "expected"), [(EIGHTHS, [25, 5, 10]), (TENTHS, [28, 4, 8])])
def test_generated_data_is_new_for_every_seed(split, expected):
    """The paper's eighths or the commands' tenths; no query twice; another seed, other data."""
    source = open_labelled("generated", dataset=None, size=SIZE, split=split)
    first, second = source.parts(1, 1), source.parts(1, 2)
    parts = [queries(part) for part in (first.train, first.validation, first.test)]
    assert [len(part) for part in parts] == expected
    assert len(set.union(*parts)) == 40
    assert not np.array_equal(first.train.features.values[:5], second.train.features.values[:5])


def test_a_file_is_cut_into_five_folds(tmp_path):
    """Every query is tested in exactly one fold, and trains where it does not test or validate."""
    data = make_search_dataset(n_queries=23, n_features=16, seed=1)
    write_letor(tmp_path / "some.txt.gz", data)
    source = open_labelled(str(tmp_path / "some.txt.gz"), dataset=None, size=SIZE)
    assert (source.name, source.n_folds) == ("some", 5)
    tested = []
    for fold in range(1, 6):
        parts = source.parts(fold, 1)
        train, validation, test = map(queries, (parts.train, parts.validation, parts.test))
        assert train | validation | test == queries(data)
        assert train.isdisjoint(validation | test)
        assert validation.isdisjoint(test)
        tested += sorted(test)
    assert sorted(tested) == sorted(queries(data))
    assert queries(source.parts(1, 1).test) != queries(source.parts(1, 2).test)


def test_a_folder_keeps_its_folds(tmp_path):
    """A known layout is used as it is; one without validation lends some training queries."""
    data = make_search_dataset(n_queries=30, n_features=16, seed=1)
    for name, rows in (("train", np.arange(20)), ("test", np.arange(20, 30))):
        write_letor(tmp_path / f"{name}.txt.gz", data.take_queries(rows))
    source = open_labelled(str(tmp_path), dataset=None, size=SIZE)
    assert source.n_folds == 1
    parts = source.parts(1, 1)
    assert (parts.train.n_queries, parts.validation.n_queries) == (16, 4)
    assert not queries(parts.train) & queries(parts.validation)


def test_the_folds_of_real_data_are_counted(real_data):
    """MQ2008 lies in five parts, from which five folds are made."""
    source = open_labelled(str(real_data / "mq2008"), dataset="mq2008", size=SIZE)
    assert (source.name, source.n_folds) == ("mq2008", 5)


def test_missing_data_is_named(tmp_path):
    """A path that is not there is an error that says what may be given."""
    with pytest.raises(DataError, match="nowhere is not there: give the folder of a dataset"):
        open_labelled(str(tmp_path / "nowhere"), dataset=None, size=SIZE)


def test_as_given_is_not_cut(tmp_path):
    """A file is all of it in every part; a folder without validation has none."""
    data = make_search_dataset(n_queries=6, n_features=16, seed=1)
    for name in ("train", "test"):
        write_letor(tmp_path / f"{name}.txt.gz", data)
    file = open_labelled(str(tmp_path / "train.txt.gz"), dataset=None, size=SIZE).as_given(1, 1)
    assert queries(file.train) == queries(file.validation) == queries(file.test) == queries(data)
    assert file.max_grade == data.relevance.max()
    assert open_labelled(str(tmp_path), dataset=None, size=SIZE).as_given(1, 1).validation is None
