"""Keys and their codes: what comes back, what counts as a number, what matches what."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from unskew.log.keys import KeyCoder, decode_categories, is_whole_number, key_hashes, match_keys


def through(*batches: pa.Array, from_text: bool = False) -> list[object]:
    """The keys of some batches, coded one after the other and decoded together."""
    coder = KeyCoder(from_text=from_text)
    codes = np.concatenate([coder.encode(batch) for batch in batches])
    keys, index = coder.decode(codes)
    assert keys.tolist() == sorted(keys.tolist())
    return keys[index].tolist()


def test_keys_come_back():
    """Integers of any size and texts are what they were, over several batches."""
    assert through(pa.array([5, -3], pa.int8()), pa.array([2**40])) == [5, -3, 2**40]
    large = pa.array([2**63 + 5, 3], pa.uint64())
    assert through(large, pa.array([2**63 + 4], pa.uint64())) == [2**63 + 5, 3, 2**63 + 4]
    assert through(pa.array(["b", "a", "b"]), pa.array(["c", "a"])) == ["b", "a", "b", "c", "a"]


@pytest.mark.parametrize("keys", [[7, None], ["x", None]])
def test_a_null_beside_keys(keys):
    """A null among keys, which is reported elsewhere, leaves the others as they are."""
    assert through(pa.array(keys))[0] == keys[0]
    assert through(pa.array([7, None], pa.uint64()))[0] == 7


def test_texts_that_are_numbers():
    """Read from text, keys are numbers if all are written so; else, or if kept, they stay text."""
    assert through(pa.array(["10", "9"]), from_text=True) == [10, 9]
    assert through(pa.array(["10", "09"]), from_text=True) == ["10", "09"]
    assert through(pa.array(["10", "9"])) == ["10", "9"]
    coder = KeyCoder(from_text=True)
    codes = coder.encode(pa.array(["10", "9"]))
    coder.keep_text()
    assert coder.decode(codes)[0].tolist() == ["10", "9"]


def test_ranks_sort_like_the_keys():
    """Beside every key stands a number; in their order the keys ascend, whatever their kind."""
    for keys in (
        pa.array([4, -1, 9]), pa.array([2**63 + 1, 2, 2**63], pa.uint64()), pa.array(["b", "a", "c"]),
    ):  # fmt: skip
        coder = KeyCoder()
        found, rank = coder.ranked(coder.encode(keys))
        assert found.tolist() == keys.to_pylist()
        assert found[np.argsort(rank)].tolist() == sorted(keys.to_pylist())


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("0", True), ("-7", True), ("007", False), ("-0", False), ("", False), ("7.0", False),
        (str(2**63 - 1), True), (str(2**63), False), (str(-(2**63)), True), (str(-(2**63) - 1), False),
    ],
)  # fmt: skip
def test_what_a_whole_number_is(text, whole):
    """The plain writing of a 64-bit integer, to its last digit, and nothing else."""
    assert is_whole_number(text) is whole


def test_matching_keys():
    """A key is found by its value; a number and its plain writing match; -1 is a key not known."""
    assert match_keys(pa.array([30, 10, 20]), np.array([10, 30])).tolist() == [1, 0, -1]
    known = np.array(["10", "30"], dtype=object)
    assert match_keys(pa.array([30, 10, 20]), known).tolist() == [1, 0, -1]
    assert match_keys(pa.array(["30", "030", None]), np.array([10, 30])).tolist() == [1, -1, -1]


def test_categories_are_sorted():
    """Codes of first appearance become those of the sorted categories; missing ones stay missing."""
    coder = KeyCoder()
    codes = coder.encode(pa.array(["red", "blue"]))
    values = np.array([[0.5, codes[0]], [1.5, np.nan], [2.5, codes[1]]])
    found = decode_categories(values, ("price", "colour"), {"colour": coder})
    assert found.categories == {"colour": ("blue", "red")}
    np.testing.assert_array_equal(found.values, [[0.5, 1.0], [1.5, np.nan], [2.5, 0.0]])


def test_memory_of_texts():
    """Texts take memory for each distinct one; integers are their own codes and take none."""
    coder = KeyCoder()
    coder.encode(pa.array([1, 2, 3]))
    assert coder.n_bytes == 0
    coder.encode(pa.array(["a", "b", "a"]))
    two = coder.n_bytes
    coder.encode(pa.array(["c", "d"]))
    assert coder.n_bytes == 2 * two > 200


def test_hashes_of_keys_do_not_change():
    """Parts of a log that another process or release wrote are found again by the same hashes."""
    found = key_hashes(np.array([7, "tea", "☕"], dtype=object))
    assert found.tolist() == [4054444201307775948, 12249904272702481082, 5238855592440867493]
    assert key_hashes(np.array(["7"], dtype=object))[0] == found[0]
