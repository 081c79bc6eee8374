"""The commands. Each imports what it needs when it runs, so that --help is instant."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from loopwright.cli.output import Output
from loopwright_core.errors import LoopwrightError

if TYPE_CHECKING:
    from loopwright.cli.request import Request

F = TypeVar("F", bound=Callable[..., Any])


class Program(click.Group):
    """A group whose commands report failures as one clear message and a status that is not 0."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note whether failures too are to be JSON."""
        ctx.meta["loopwright.json"] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except LoopwrightError as error:
            notes = "".join(f"\n  {note}" for note in getattr(error, "__notes__", ()))
            _fail(f"{error}{notes}", ctx)
        except MemoryError as error:
            _fail(f"not enough memory: {error}. Give smaller sizes.", ctx)
        except (KeyboardInterrupt, click.Abort):
            click.echo("interrupted", err=True)
            sys.exit(130)
        except BrokenPipeError:
            sys.stderr.close()  # the reader has gone: `loopwright compile ... | head`
            sys.exit(1)


def _fail(message: str, ctx: click.Context) -> NoReturn:
    if ctx.meta["loopwright.json"]:
        click.echo(json.dumps({"error": message}))
    else:
        click.echo(f"error: {message}", err=True)
    sys.exit(1)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="loopwright", prog_name="loopwright")
def program() -> None:
    """Array expressions become fast, readable kernels."""


def json_option(command: F) -> F:
    """`--json`: one JSON document instead of text."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def schedule_options(command: F) -> F:
    """`--schedule` and `--opts`."""
    for option in (
        click.option(
            "--opts",
            multiple=True,
            metavar="STEPS",
            help='Scheduling steps: "UPCAST i 4 · VECTOR j 8"; for one of several kernels '
            '"NAME: UPCAST i 4", once for each.',
        ),
        click.option(
            "--schedule",
            type=click.Choice(["none", "heuristic", "beam"]),
            default=None,
            help="How a schedule is found where --opts gives none.",
        ),
    ):
        command = option(command)
    return command


def function_options(is_required: bool = True) -> Callable[[F], F]:
    """What all commands over a function take; they get it as `request`."""
    metavar = "FILE.py:FUNC" if is_required else "[FILE.py:FUNC]"
    argument = click.argument("function", metavar=metavar, required=is_required)
    arg = click.option(
        "--arg",
        "args",
        multiple=True,
        metavar="NAME=DTYPE[SHAPE]",
        help="An argument, such as x=f32[1024,1024]; once for each.",
    )
    device = click.option("--device", help="Such as cpu; default: the best there is.")

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def call(
            function: str | None,
            args: tuple[str, ...],
            device: str | None,
            schedule: str | None,
            opts: tuple[str, ...],
            **rest: Any,
        ) -> None:
            from loopwright.cli.request import Request

            asked = None if function is None else Request(function, args, device, schedule, opts)
            command(request=asked, **rest)

        return argument(arg(device(schedule_options(call))))  # type: ignore[return-value]

    return decorate


@program.command()
@click.option("--device", help="Which device; default: the best there is.")
@click.option("--no-source", is_flag=True, help="Leave the kernels' text out.")
@schedule_options
@json_option
def demo(
    device: str | None,
    no_source: bool,
    schedule: str | None,
    opts: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compile and run three real kernels here, checked against NumPy in float64."""
    from loopwright.cli.demo import run_demo

    _exit(run_demo(device, not no_source, schedule, opts, Output(as_json)))


@program.command()
@json_option
def devices(as_json: bool) -> None:
    """Every device, how far it gets on this machine, and why not further."""
    from loopwright.cli.report import report_devices

    _exit(report_devices(Output(as_json)))


@program.command()
@json_option
def plugins(as_json: bool) -> None:
    """Every plugin found, loaded or not, and why."""
    from loopwright.cli.report import report_plugins

    _exit(report_plugins(Output(as_json)))


@program.command()
@json_option
def doctor(as_json: bool) -> None:
    """Check this installation: plugins, devices, compiler, cache."""
    from loopwright.cli.report import report_health

    _exit(report_health(Output(as_json)))


@program.command("compile")
@function_options()
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write the text here.")
@click.option(
    "--print-after",
    multiple=True,
    type=click.Choice(["fuse", "index", "schedule", "lower", "render", "all"]),
    help="Print what this stage made, too; may be given several times.",
)
@json_option
def compile_(
    request: Request, output: str | None, print_after: tuple[str, ...], as_json: bool
) -> None:
    """The kernels of a function as text. The device need not be on this machine."""
    from loopwright.cli.function import compile_function

    _exit(compile_function(request, output, print_after, Output(as_json)))


@program.command()
@function_options()
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random arguments.")
@click.option("--no-check", is_flag=True, help="Do not compare with NumPy.")
@json_option
def run(request: Request, seed: int, no_check: bool, as_json: bool) -> None:
    """Run a function on random data: compare with NumPy, print time, GFLOP/s and GB/s."""
    from loopwright.cli.function import run_function

    _exit(run_function(request, seed, not no_check, Output(as_json)))


@program.command()
@function_options()
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write one HTML page here.")
@json_option
def explain(request: Request, output: str | None, as_json: bool) -> None:
    """Every stage, decision and schedule of a function's kernels, and why they are so."""
    from loopwright.cli.explain import explain_function

    _exit(explain_function(request, output, Output(as_json)))


@program.command()
@function_options()
@click.option(
    "-o", "--output", type=click.Path(file_okay=False), required=True, help="A new directory."
)
@json_option
def export(request: Request, output: str, as_json: bool) -> None:
    """A function as C alone: its kernels, a header, and a main that runs them."""
    from loopwright.cli.export import export_function

    _exit(export_function(request, output, Output(as_json)))


@program.command()
@function_options(is_required=False)
@click.option("--beam", type=click.IntRange(1), default=4, show_default=True, help="Kept a step.")
@click.option(
    "--budget",
    "budget_s",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    show_default=True,
    help="Seconds for each kernel.",
)
@click.option("--export", type=click.Path(dir_okay=False), help="Write all results here.")
@click.option("--import", "import_", type=click.Path(dir_okay=False), help="Take results in first.")
@json_option
def tune(
    request: Request | None,
    beam: int,
    budget_s: float,
    export: str | None,
    import_: str | None,
    as_json: bool,
) -> None:
    """Search for the fastest schedules and keep them. Ctrl-C keeps the best so far."""
    from loopwright.cli.tune import tune_function

    _exit(tune_function(request, beam, budget_s, export, import_, Output(as_json)))


@program.command()
@click.argument("names", nargs=-1, metavar="[WORKLOAD]...")
@click.option("--peers", help="Such as loopwright,numpy,torch; default: all that are installed.")
@click.option(
    "--python",
    "pythons",
    multiple=True,
    metavar="PEER=PATH",
    help="The interpreter of a peer that lives in an environment of its own.",
)
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True)
@click.option(
    "--rounds", type=click.IntRange(1), default=7, show_default=True, help="Of all peers."
)
@click.option(
    "--cold",
    "is_cold",
    is_flag=True,
    help="Time to the first result, with an empty cache and a new process each time.",
)
@json_option
def bench(
    names: tuple[str, ...],
    peers: str | None,
    pythons: tuple[str, ...],
    threads: int,
    rounds: int,
    is_cold: bool,
    as_json: bool,
) -> None:
    """The benchmark table on this machine, against the peers that are installed.

    WORKLOAD: rows whose name begins so; all by default. The peers run in turns, each in a process
    of its own; each result is compared with float64 first.
    """
    from loopwright.cli.bench import bench as run_bench

    _exit(run_bench(names, peers, pythons, threads, rounds, is_cold, Output(as_json)))


@program.group()
def cache() -> None:
    """The compiled kernels kept on disk."""


@cache.command("ls")
@json_option
def cache_ls(as_json: bool) -> None:
    """List what is kept."""
    from loopwright.cli.report import report_cache

    _exit(report_cache(Output(as_json)))


@cache.command("clear")
@json_option
def cache_clear(as_json: bool) -> None:
    """Remove everything that is kept."""
    from loopwright.cli.report import clear_cache

    _exit(clear_cache(Output(as_json)))


@cache.command("verify")
@json_option
def cache_verify(as_json: bool) -> None:
    """Check every entry; damaged ones are removed and named."""
    from loopwright.cli.report import verify_cache

    _exit(verify_cache(Output(as_json)))


def _exit(is_good: bool) -> None:
    if not is_good:
        sys.exit(1)
