"""The options by which a command trains or compacts with several workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from unskew.cli.groups import panel
from unskew.errors import UsageError

_option = panel("Several workers")


@dataclass(frozen=True)
class ClusterInput:
    """Which engine trains, and how."""

    engine: Annotated[
        str | None,
        _option("local, dask or spark: LOG is then a folder of parts, the booster XGBoost."),
    ] = None
    workers: Annotated[
        int | None, _option("How many workers; without --engine, processes of this machine.")
    ] = None
    address: Annotated[
        str | None, _option("The address of a Dask scheduler, such as tcp://host:8786.")
    ] = None
    master: Annotated[str | None, _option("The master of Spark, such as spark://host:7077.")] = None
    timeout: Annotated[
        int | None, _option("Seconds that a worker waits for another (default 300).")
    ] = None
    checkpoints: Annotated[
        str | None, _option("A folder to keep the training in, and to go on from.", metavar="DIR")
    ] = None
    checkpoint_every: Annotated[int | None, _option("Rounds between two of them (default 50).")] = (
        None
    )
    restarts: Annotated[
        int | None, _option("How often a lost worker is made good (default 0).")
    ] = None
    external_memory: Annotated[
        str | None, _option("A folder for binned features that exceed memory.", metavar="DIR")
    ] = None

    @property
    def wanted(self) -> bool:
        """Whether any of the options was given."""
        return any(value is not None for value in self.__dict__.values())

    def made(self) -> Any:
        """The engine that the options ask for."""
        from unskew.registry import ENGINES

        name = self.engine or "local"
        if name not in ENGINES:
            raise UsageError(f"--engine must be one of {', '.join(ENGINES)}, got {name!r}")
        only = {"address": ("dask", "client"), "master": ("spark", "master")}
        options: dict[str, Any] = {
            key: value
            for key in ("timeout", "checkpoints", "checkpoint_every", "restarts", "external_memory")
            if (value := getattr(self, key)) is not None
        }
        if self.workers is not None:
            options["n_workers"] = self.workers
        for key, (owner, parameter) in only.items():
            if getattr(self, key) is not None:
                if name != owner:
                    raise UsageError(f"--{key} goes with --engine {owner}")
                options[parameter] = getattr(self, key)
        return ENGINES[name].load()(**options)
