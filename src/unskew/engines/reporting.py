"""Reports: the first worker tells the program that launched it about every round, and hears back.

The program listens on a port of its own; messages are JSON, and whoever connects must know the key.
So callbacks and the progress bar stay in the user's own process, whatever engine runs the workers.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

import numpy as np

from unskew.position_bias import PositionBias
from unskew.progress import Advance
from unskew.rankers.training import Callback, TrainingRound


class Reporter:
    """What a worker reports to; without an address it keeps silent."""

    def __init__(self, address: dict[str, Any] | None) -> None:
        self._connection: Connection | None = None
        if address is not None:
            place = (address["host"], int(address["port"]))
            self._connection = Client(place, authkey=bytes.fromhex(address["key"]))

    def __call__(self, seen: TrainingRound) -> bool:
        """Tell of a round; returns whether the training is to end."""
        if self._connection is None:
            return False
        message = {
            "number": seen.number, "n_rounds": seen.n_rounds, "metric": seen.metric,
            "t_plus": seen.bias.t_plus.tolist(), "t_minus": seen.bias.t_minus.tolist(),
        }  # fmt: skip
        try:
            self._connection.send_bytes(json.dumps(message).encode())
            return bool(json.loads(self._connection.recv_bytes()))
        except (EOFError, OSError):
            # The program is gone: nobody waits for this model.
            return True


class RoundListener:
    """Listens for rounds in a thread of the user's process and runs the callbacks there."""

    def __init__(
        self, host: str, callbacks: Sequence[Callback], advance: Advance, note: Callable[..., str]
    ) -> None:
        self._key = secrets.token_bytes(16)
        self._callbacks, self._advance, self._note = callbacks, advance, note
        self._listener = Listener((host, 0), authkey=self._key)
        self._host = host
        self.stop = False
        self.last_round = 0
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True, name="unskew-rounds")
        self._thread.start()

    @property
    def address(self) -> dict[str, Any]:
        """What a worker needs to report."""
        return {"host": self._host, "port": self._listener.address[1], "key": self._key.hex()}

    def _serve(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except (OSError, EOFError):
                return
            except Exception:  # noqa: S112 - somebody without the key
                continue
            with suppress(EOFError, OSError), connection:
                while True:
                    told = json.loads(connection.recv_bytes())
                    connection.send_bytes(json.dumps(self._heard(told)).encode())

    def _heard(self, told: dict[str, Any]) -> bool:
        """Whether the training is to end after this round."""
        metric = None if told["metric"] is None else (told["metric"][0], float(told["metric"][1]))
        bias = PositionBias(np.array(told["t_plus"]), np.array(told["t_minus"]))
        seen = TrainingRound(int(told["number"]), int(told["n_rounds"]), bias, metric)
        fresh = seen.number > self.last_round
        self.last_round = max(self.last_round, seen.number)
        try:
            if fresh:
                self._advance(1, self._note(seen))
                # Every callback is asked, whatever the others say.
                asked = [callback(seen) for callback in self._callbacks]
                self.stop |= any(asked)
        except BaseException as error:
            self.error, self.stop = error, True
        return self.stop

    def close(self) -> None:
        """Listen no more."""
        with suppress(OSError):
            self._listener.close()
