"""The settings of a training run: the command line over a TOML file over the defaults."""

from __future__ import annotations

import tomllib
from inspect import signature
from pathlib import Path
from typing import Any

from unskew.errors import DataError, UsageError

# What --config may hold beside the settings of a ranker.
_NOT_SETTINGS = {"n_jobs", "verbose"}


def read_config(path: str | None) -> dict[str, Any]:
    """The settings in a TOML file; {} without one."""
    if path is None:
        return {}
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not TOML: {error}") from error


def ranker_settings(
    config: dict[str, Any], given: dict[str, Any], assignments: list[str]
) -> dict[str, Any]:
    """The settings of a ranker: options that were given win over the file."""
    settings = {name: value for name, value in config.items() if name not in _NOT_SETTINGS}
    nested = [name for name, value in settings.items() if isinstance(value, dict)]
    if nested:
        raise UsageError(f"--config: settings stand at the top, found the section(s) {nested}")
    settings.update((name, value) for name, value in given.items() if value is not None)
    settings.update(assignment(text) for text in assignments)
    if "debias" in settings:
        settings["debias"] = debias_of(settings["debias"])
    return settings


def ranker_or(settings: dict[str, Any], init_model: str | None, *, by_hand: bool) -> str:
    """Which ranker is meant; taken out of the settings if it stands there.

    A model that is continued has said it already. Without any word it is the one that chooses, unless
    the call has settings that only other rankers have, or ``by_hand`` something else that it does not
    take: then it is the paper's.
    """
    from unskew.registry import RANKERS, ranker_of_folder
    from unskew.store import read_kind

    if "ranker" in settings:
        return str(settings.pop("ranker"))
    if init_model is not None:
        entry = ranker_of_folder(read_kind(init_model))
        return "lambdamart" if entry is None else entry.name
    if by_hand or not set(settings) <= set(signature(RANKERS["auto"].load()).parameters):
        return "lambdamart"
    return "auto"


def make_ranker(name: str, *, n_jobs: int | None, verbose: int, **settings: Any) -> Any:
    """A ranker of the registry; a setting that it does not have is an error that names it."""
    from unskew.choose.search_space import check_names
    from unskew.registry import RANKERS

    if not isinstance(name, str) or name not in RANKERS:
        raise UsageError(f"--ranker must be one of {', '.join(RANKERS)}, got {name!r}")
    check_names(name, settings)
    return RANKERS[name].load()(n_jobs=n_jobs, verbose=verbose, **settings)


def debias_of(value: Any) -> Any:
    """The debias setting as text: a name, "none", a file, or propensities with commas."""
    from unskew.registry import METHODS

    if not isinstance(value, str) or value in METHODS:
        return value
    if value in {"none", "None"}:
        return None
    if value.endswith(".json") or Path(value).is_file():
        from unskew.bias.saved import load_bias

        return load_bias(value)
    try:
        return [float(part) for part in value.split(",")]
    except ValueError:
        raise UsageError(
            f"--debias must be {', '.join(METHODS)}, none, a file of 'unskew bias -o', or "
            "propensities such as 0.68,0.61,0.48: "
            f"got {value!r}"
        ) from None


def assignment(text: str) -> tuple[str, Any]:
    """``name=value`` with the value as TOML writes it; anything else is text."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"--set needs name=value, got {text!r}")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name.strip(), value.strip()
