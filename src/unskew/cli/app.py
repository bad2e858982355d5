"""The program `unskew`: its commands, and what every one of them does with an error."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer

from unskew import __version__
from unskew.cli.choices import command
from unskew.cli.console import errors, show
from unskew.errors import MissingDependencyError, UnskewError, UsageError
from unskew.places import without_secrets_in

# Exit codes.
DATA_IS_WRONG = 1
CALL_IS_WRONG = 2
INTERRUPTED = 130

# One module of this package per command, in the order of the help page; each has a function `run`, or
# `commands` of its own.
COMMANDS: tuple[str, ...] = (
    "demo", "simulate", "inspect", "advise", "compact", "bias", "clicks", "train", "tune", "rank",
    "evaluate", "report", "ab", "interleave", "judge", "export", "paper",
)  # fmt: skip

app = typer.Typer(
    name="unskew",
    help="Learn search rankers from biased clicks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"unskew {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Learn search rankers from biased clicks."""


for _name in COMMANDS:
    _module = import_module(f"unskew.cli.{_name}")
    if hasattr(_module, "commands"):
        app.add_typer(_module.commands, name=_name)
    else:
        command(app, _name)(_module.run)


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line; the exit code is 0 if fine, 1 if the data is wrong, 2 if the call is."""
    before, warnings.formatwarning = warnings.formatwarning, _note
    try:
        return app(arguments)
    except (UsageError, MissingDependencyError) as error:
        _end(str(error), CALL_IS_WRONG)
    except (UnskewError, OSError) as error:
        _end(str(error), DATA_IS_WRONG)
    except KeyboardInterrupt:
        _end("interrupted", INTERRUPTED)
    finally:
        warnings.formatwarning = before


def _note(message: Warning | str, category: type[Warning], *place: Any, **line: Any) -> str:
    """A warning as a user of the command line reads it: what it says, and no line of source."""
    return f"note: {without_secrets_in(str(message))}\n"


def _end(message: str, code: int) -> NoReturn:
    show(("unskew:", "bold red"), f" {message}", to=errors)
    sys.exit(code)
