"""C code without dependencies, written by tl2cgen; the check compiles it with gcc."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from unskew.array_types import FloatArray
from unskew.errors import MissingDependencyError
from unskew.export.format import Exportable, Scores
from unskew.export.treelite_model import treelite_model

_MODEL = "main.c"


class _C:
    def files(self, model: Exportable) -> Mapping[str, bytes]:
        with TemporaryDirectory() as folder:
            _tl2cgen().generate_c_code(treelite_model(model.trees), dirpath=folder, params={})
            return {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir())}

    def score(self, files: Mapping[str, Path], values: FloatArray, version: str) -> Scores:
        tl2cgen = _tl2cgen()
        with TemporaryDirectory() as folder:
            for name in ("recipe.json", *(n for n in files if n.endswith((".c", ".h")))):
                (Path(folder) / name).write_bytes(files[name].read_bytes())
            library = tl2cgen.create_shared(toolchain="gcc", dirpath=folder)
            predictor = tl2cgen.Predictor(library, nthread=1)
            rows = tl2cgen.DMatrix(values.astype(predictor.threshold_type))
            score = predictor.predict(rows, pred_margin=True)
        return {_MODEL: np.asarray(score, dtype=np.float64).reshape(len(values))}


def _tl2cgen() -> Any:
    try:
        import tl2cgen
    except ImportError as error:
        raise MissingDependencyError("tl2cgen", "treelite", "the format c") from error
    return tl2cgen


FORMAT = _C()
