"""A bias as a file: what is written is read back, and whatever else lies there is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from unskew.bias import load_bias, save_bias
from unskew.bias.saved import load_propensities
from unskew.errors import StoreError
from unskew.position_bias import PositionBias

BIAS = PositionBias(
    np.array([1.0, 1 / 3]), np.ones(2), never_clicked_positions=(2,),
    interval_plus=np.array([[1.0, 0.2], [1.0, 0.4]]), level=0.95,
)  # fmt: skip


def test_a_bias_comes_back(tmp_path):
    """Every digit, interval and mark; method, version and notes stand beside them."""
    file = tmp_path / "new" / "bias.json"
    save_bias(file, BIAS, method="harvesting", notes=["measured in May"])
    assert load_bias(file).to_dict() == BIAS.to_dict()
    content = json.loads(file.read_text())
    assert content["kind"] == "position-bias"
    assert content["version"] == 1
    assert content["method"] == "harvesting"
    assert content["notes"] == ["measured in May"]
    assert [one.name for one in file.parent.iterdir()] == ["bias.json"]


def test_propensities_are_a_bias_too(tmp_path):
    """JSON with propensities alone, or with t_plus alone, is taken."""
    file = tmp_path / "p.json"
    file.write_text('{"propensity": [0.8, 0.4]}')
    assert load_bias(file).t_plus.tolist() == [1.0, 0.5]
    assert load_propensities(file).tolist() == [0.8, 0.4]
    file.write_text('{"t_plus": [1.0, 0.25]}')
    assert load_bias(file).t_minus.tolist() == [1.0, 1.0]
    assert load_propensities(file).tolist() == [1.0, 0.25]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x80\x02}q\x00.", "is no JSON"),
        (b"PAR1\x00\x00", "is no JSON"),
        (b'{"t_plus": [1.0', "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b"[1.0, 0.5]", "holds a list"),
        (b"{}", r"missing \['t_minus', 't_plus'\]"),
        (b'{"t_plus": [[1.0], [1.0, 2.0]], "t_minus": [1.0]}', "t_plus must be numbers"),
        (b'{"t_plus": [[1.0, 0.5]], "t_minus": [1.0, 1.0]}', r"got shape \(1, 2\)"),
        (b'{"t_plus": {"a": 1}, "t_minus": [1.0]}', "t_plus must be"),
        (b'{"t_plus": [1.0, "x"], "t_minus": [1.0, 1.0]}', "t_plus must be numbers"),
        (b'{"t_plus": [1.0, 0.5], "t_minus": [1.0]}', "got 2 and 1 entries"),
        (b'{"t_plus": [1.0, 0.0], "t_minus": [1.0, 1.0]}', "position 2 has 0.0"),
        (b'{"t_plus": [1.0, NaN], "t_minus": [1.0, 1.0]}', "position 2 has nan"),
        (b'{"kind": "impressions"}', "holds 'impressions', not a position bias"),
        (b'{"kind": "position-bias", "version": 9}', "newer Unskew"),
        (b'{"propensity": "0.5"}', "propensity must be"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    """Binary, torn, nested, ragged or wrong: the error names the file and what is wrong with it."""
    file = tmp_path / "bias.json"
    file.write_bytes(content)
    with pytest.raises(StoreError, match=message) as error:
        load_bias(file)
    assert str(file) in str(error.value)


def test_no_file_and_a_folder(tmp_path):
    """Both are said to be so, for reading and for writing."""
    with pytest.raises(StoreError, match="is not there"):
        load_bias(tmp_path / "none.json")
    with pytest.raises(StoreError, match="is a folder"):
        load_bias(tmp_path)
    with pytest.raises(StoreError, match="is a folder"):
        save_bias(tmp_path, BIAS)
