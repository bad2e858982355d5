"""The click models of CLAX on sessions from a file: run by the interpreter that has `clax-models`.

    PYTHON _clax.py sessions.npz model limit_seconds

Prints one JSON object on its last line. Sessions lie in memory as batches before the clock starts, so
that reading costs CLAX nothing; compiling is part of its training time, as its users see it.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

# The settings of CLAX's own experiment on Yandex's log, with batches that suit smaller logs too.
LEARNING_RATE, EPOCHS, SEED = 0.01, 100, 42
SMALL, LARGE, LARGE_FROM = 512, 4096, 200_000
# The models of CLAX by their name there, and by the name they have here.
CLASSES = {
    "pbm": "PositionBasedModel",
    "ubm": "UserBrowsingModel",
    "dbn": "DynamicBayesianNetwork",
    "dcm": "DependentClickModel",
}


class TimeUpError(Exception):
    """The time limit has passed."""


class Batches:
    """Sessions in batches; at the limit, looked at before each batch, training ends."""

    def __init__(self, content: dict[str, Any], split: str, size: int, ends: float) -> None:
        document, click = content[f"{split}_document"], content[f"{split}_click"]
        n, length = document.shape
        position = np.tile(np.arange(1, length + 1, dtype=np.int16), (size, 1))
        self.ends = ends
        self.batches = [
            {
                "query_doc_ids": document[first : first + size],
                "positions": position[: min(size, n - first)],
                "clicks": click[first : first + size],
                "mask": np.ones((min(size, n - first), length), dtype=np.bool_),
            }
            for first in range(0, n, size)
        ]

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.batches:
            if time.perf_counter() > self.ends:
                raise TimeUpError
            yield batch


def main() -> None:
    """Train, measure on the test sessions, print."""
    import clax  # type: ignore[import-not-found]
    import optax  # type: ignore[import-not-found]
    from flax import nnx  # type: ignore[import-not-found]

    file, name, limit = sys.argv[1], sys.argv[2], float(sys.argv[3])
    content = dict(np.load(file))
    n_sessions, length = content["train_document"].shape
    size = LARGE if n_sessions >= LARGE_FROM else SMALL
    sizes = {"query_doc_pairs": int(content["n_documents"])}
    if name != "dbn":
        sizes["positions"] = length
    model = getattr(clax, CLASSES[name])(**sizes, rngs=nnx.Rngs(SEED))
    trainer = clax.Trainer(optimizer=optax.adamw(LEARNING_RATE), epochs=EPOCHS)
    train = Batches(content, "train", size, np.inf)
    validation = Batches(content, "validation", size, np.inf)
    test = Batches(content, "test", size, np.inf)
    stopped, epochs = False, 0
    with contextlib.redirect_stdout(sys.stderr):
        start, processor = time.perf_counter(), time.process_time()
        train.ends = start + limit
        try:
            epochs = len(trainer.train(model, train, validation))
        except TimeUpError:
            stopped = True
        seconds, processor = time.perf_counter() - start, time.process_time() - processor
        found = trainer.test_clicks(model, test).iloc[-1]
    print(
        json.dumps(
            {
                "seconds": seconds,
                "processor": processor,
                "stopped": stopped,
                "epochs": epochs,
                "log_likelihood": float(found["test_ll"]),
                "perplexity": float(found["test_ppl"]),
                "conditional_perplexity": float(found["test_cond_ppl"]),
            }
        )
    )


if __name__ == "__main__":
    main()
