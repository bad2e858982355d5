"""`unskew demo`: the whole story on simulated clicks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from unskew.cli.console import ends, errors, output, say, show
from unskew.cli.reading import Quiet
from unskew.cli.writing import Overwrite, check_outputs
from unskew.errors import UsageError
from unskew.terminal import bar

if TYPE_CHECKING:
    from unskew.demo.story import Story


def run(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for report.html.")] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option(help="Another seed, another world.", min=0)] = 1,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Simulate clicks, train with and without debiasing, compare; takes about a minute."""
    report = out / "report.html"
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out: {out} is a file; give the name of a folder")
    out.mkdir(parents=True, exist_ok=True)
    check_outputs({"--out": report}, [], overwrite=overwrite)
    if not quiet:
        say("loading …")
    from unskew.demo.page import demo_report
    from unskew.demo.story import tell

    if quiet:
        story = tell(seed)
    else:
        with errors.status("…") as status:

            def report_step(message: str) -> None:
                say(message)
                status.update(f"{message} …")

            story = tell(seed, say=report_step)
    show_story(story)
    if not quiet:
        say("writing the report")
    demo_report(story).save(report)
    show(f"\nThe report: {report.resolve()}")


def show_story(story: Story) -> None:
    """Print the comparison, the paired differences and the bias curves."""
    from unskew.cli.evaluate import comparison_table, evaluation_table

    output.print(evaluation_table(story.evaluations))
    chosen = [c for c in story.comparisons if c.metric in ("ndcg@1", "ndcg@10")]
    output.print(comparison_table(chosen))
    output.print(_bias_table(story))
    gain = story.gain
    verdict = "beats" if gain.interval.low > 0 else "does not clearly beat"
    show(
        f"{gain.a} {verdict} {gain.b}: NDCG@10 {gain.difference:+.4f} {ends(gain.interval, '+.4f')}"
    )


def _bias_table(story: Story) -> Table:
    table = Table("position", "true", "", "t_plus", "", "t_minus", title="position bias")
    estimated = story.estimated_bias
    for k, truth in enumerate(story.true_bias):
        plus, minus = float(estimated.t_plus[k]), float(estimated.t_minus[k])
        table.add_row(
            str(k + 1), f"{truth:.2f}", bar(truth, 1.0, 16), f"{plus:.2f}", bar(plus, 1.0, 16),
            f"{minus:.2f}",
        )  # fmt: skip
    return table
