"""The lazy Click group and the one place where an error becomes a message and an exit code."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from trtconv import __version__
from trtconv.cli.echo import echo
from trtconv.cli.files import Confinement
from trtconv.cli.termination import INTERRUPTED, terminable, within_limits
from trtconv.core.errors import InvalidRequestError, LimitError, TrtconvError, did_you_mean
from trtconv.core.files.current_folder import current_folder
from trtconv.core.processors import thread_variables
from trtconv.core.text.error_text import error_text

# Command name, which is also its module in `cli/commands` or its `about`, -> short help. It stands here so that
# `trtconv --help` loads no command module.
COMMANDS: dict[str, str] = {
    "convert": "From a PyTorch module to a checked engine: all four steps.",
    "export": "PyTorch module to ONNX that equals the module at every size.",
    "rewrite": "Turn what TensorRT cannot do well into what it can, with proof.",
    "build": "ONNX to a TensorRT or TensorRT-RTX engine, static or dynamic.",
    "tune": "The fastest engine that keeps an accuracy that you name, or nothing.",
    "refit": "New weights in an engine of the same graph, proved as it was.",
    "check": "Compare an ONNX file or an engine with its original, a module or an ONNX file.",
    "sweep": "Many models x targets x precisions x GPUs, on Ray: an atlas of what holds.",
    "bench": "Latency and throughput of an engine, beside torch's.",
    "package": "A Triton model repository out of an engine.",
    "sign": "Sign an engine and all files that belong to it, with what was proved.",
    "verify": "Verify the signature of an engine or a model before it is used.",
    "inspect": "Show inputs, outputs, shape space, profiles, layers and sizes of a file.",
    "repro": "Cut the smallest failing part out of a model, for a bug report.",
    "cache": "List, verify and remove cached engines.",
    "init": "Write a commented trtconv.toml for a module.",
    "rules": "List the rewrite rules: what they match and why.",
    "plugins": "Build trtconv's plugin library for this machine, and show what there is.",
    "doctor": "What this machine can do, and what to install for the rest.",
    "help": "The pages of the documentation, without a network: `trtconv help TOPIC`.",
    "version": "The versions of trtconv and of what it uses.",
}


# Those that are about trtconv itself and not about a model.
ABOUT = ("init", "rules", "plugins", "doctor", "help", "version")
# Of a line of an error; the longest that is ours lists some hundred names.
MOST_CHARACTERS = 8000


def command_module(name: str) -> str:
    """The module of a command."""
    return f"trtconv.cli.commands.{'about.' if name in ABOUT else ''}{name}"


# Set by the shell function that `_TRTCONV_COMPLETE=bash_source trtconv` prints.
COMPLETE = "_TRTCONV_COMPLETE"
QUIET_ARITHMETIC = r"(trtconv|numpy|onnx|onnx_graphsurgeon)(\.|$)"


class OutputClosed(Exception):
    """Who read our output went away, as in `trtconv inspect m.onnx | head -1`."""


@contextmanager
def _closed_output_named() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise OutputClosed from error


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which a model walks through them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(command_module(cmd_name)).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Add the nearest name to the error for an unknown command."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            near = did_you_mean(args[0], COMMANDS)
            raise click.UsageError(f"no command is called '{args[0]}'{near}", ctx=ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that begin so, from the table, and the group's own options."""
        commands = [CompletionItem(n, help=h) for n, h in COMMANDS.items() if n.startswith(incomplete)]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        """Parse; the help is printed here. Raises OutputClosed as `invoke` does."""
        with _closed_output_named():
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Raises OutputClosed where click would end with sys.exit(1), as the user's code might."""
        with _closed_output_named():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="trtconv", message="%(prog)s %(version)s")
def cli() -> None:
    """From a PyTorch module to a TensorRT engine that was shown to compute the same thing.

    Results go to stdout, progress to stderr. Exit codes: 0 good, 1 failed, 2 usage, 3 accuracy, 4 unsupported by the
    target, 5 the environment lacks something, 6 over budget.
    """


def print_error(error: TrtconvError) -> None:
    """Show an error on stderr: what, where, details, what to do."""
    paint = sys.stderr.isatty()
    head = click.style("error: ", fg="red", bold=True) if paint else "error: "
    echo(head + _clipped(error.message), err=True, color=paint)
    if error.where:
        echo(f"  at {_clipped(error.where)}", err=True)
    for line in error.details:
        echo(f"  {_clipped(line)}", err=True)
    if error.hint:
        echo(f"  -> {_clipped(error.hint)}", err=True)


def _clipped(text: str) -> str:
    """A name out of a file may have any length."""
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}... ({len(text)} characters)"


def _remedy(error: OSError) -> str:
    from trtconv.core.artifacts import SHORTER_NAME, out_of_space

    if error.errno == errno.ENAMETOOLONG:
        return SHORTER_NAME
    full = "free some space; TMPDIR names another folder for temporary files"
    return full if out_of_space(error) else "check that it is there and its permissions; --debug shows where this arose"


def main() -> NoReturn:
    """The program `trtconv`: `run` in a child, whose crash is an error."""
    from trtconv.cli.ending import note_end
    from trtconv.cli.supervision import supervise

    _reopen_closed_streams()
    _keep_results_apart()
    os.environ.update(thread_variables(os.environ))
    # Overflow and NaN are values that comparisons feed on purpose. What the user's own module warns of stays.
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=QUIET_ARITHMETIC)
    alone = "--debug" not in sys.argv and COMPLETE not in os.environ and supervise(show_error)
    try:
        run(alone=alone)
    except SystemExit:
        note_end()
        raise


def run(args: list[str] | None = None, *, alone: bool = False) -> NoReturn:
    """Run the CLI and exit with its code. `--debug` anywhere lets tracebacks through.

    `alone`: this process does nothing else, and may give up rights for good.
    """
    arguments = list(sys.argv[1:] if args is None else args)
    try:
        code = _complete() if COMPLETE in os.environ else _run(arguments, alone=alone)
        # Here and not while Python ends, which would tell of it.
        sys.stdout.flush()
        sys.stderr.flush()
    except (BrokenPipeError, OutputClosed):
        _drop_output()
        code = 128 + signal.SIGPIPE
    except OSError as error:
        # A full disk behind stdout. The command itself is over.
        text = f"what was printed cannot be written: {error.strerror or error}"
        code = show_error(TrtconvError(text, hint="free some space, or print into another file; its files are there"))
        _drop_output()
    sys.exit(code)


def _reopen_closed_streams() -> None:
    """What a shell closed (`>&-`) goes nowhere: the next file that is opened would have its number, and the output."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _keep_results_apart() -> None:
    """Results and `--json` stand alone on stdout: what C code and the user's write to descriptor 1 goes to stderr."""
    printed = sys.stdout
    printed.flush()
    results, buffering = os.dup(1), 1 if printed.isatty() else -1
    sys.stdout = os.fdopen(results, "w", buffering, encoding=printed.encoding, errors=printed.errors)
    os.dup2(2, 1)


def _complete() -> int:
    """Answer the shell's TAB: click does so, and ends with sys.exit."""
    from trtconv.cli.completion import register

    register()
    try:
        cli.main([], prog_name="trtconv", complete_var=COMPLETE, standalone_mode=False)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 1
    return 1


def _drop_output() -> None:
    """What is still in the buffers goes nowhere; whoever reads the other stream has no message of it."""
    with open(os.devnull, "w") as nowhere:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
            with suppress(OSError, ValueError):
                os.dup2(nowhere.fileno(), stream.fileno())


def _run(arguments: list[str], *, alone: bool = False) -> int:
    debug = "--debug" in arguments
    # Unless told not to, ONNX Runtime 1.31 on Linux reports its use over the network, under a number kept in ~/.cache.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    terminated: list[int] = []
    exceeded: list[LimitError] = []
    try:
        with terminable() as terminated, within_limits(show_error) as exceeded:
            words = [w for w in arguments if w != "--debug"]
            result = cli.main(words, prog_name="trtconv", standalone_mode=False, obj=Confinement(alone))
        code = result if isinstance(result, int) else 0
    except click.ClickException as error:
        error.show()
        code = 2
    except (KeyboardInterrupt, click.Abort):
        if exceeded:
            return show_error(exceeded[0])
        echo(INTERRUPTED, err=True)
        code = 143 if terminated else 130
    except (BrokenPipeError, OutputClosed):
        raise
    except SystemExit as error:
        # No command ends in this way: it is the user's module, such as a script without `if __name__ == "__main__"`.
        if debug:
            raise
        from trtconv.export.module.user_code import exited

        code = show_error(exited(error, Path()))
    except BaseException as error:
        if debug:
            raise
        code = show_error(error)
    return code


def show_error(error: BaseException) -> int:
    """Print what ended a command and return its exit code: a TrtconvError, what the machine lacks, or a bug of ours."""
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop"):  # `Path.resolve` before Python 3.13
        error = InvalidRequestError(f"links lead in a circle: {error}", hint="name the file itself")
    if isinstance(error, UnicodeEncodeError) and error.encoding == sys.getfilesystemencoding():
        text = f"the encoding of this locale, {error.encoding}, has no {error.object[error.start : error.end]!a}"
        error = InvalidRequestError(f"{text}, which a path here has", hint="set PYTHONUTF8=1, or LC_ALL=C.UTF-8")
    if isinstance(error, TrtconvError):
        print_error(error)
        return error.exit_code
    if isinstance(error, MemoryError):
        detail = f": {error}" if str(error) else ""
        print_error(TrtconvError(f"this machine has too little memory{detail}", hint="make the ranges smaller"))
    elif isinstance(error, OSError):
        file_name = f" '{error.filename}'" if error.filename else ""
        if not file_name and error.errno == errno.ENOENT and current_folder() is None:
            print_error(TrtconvError("the current folder was removed", hint="go to another one: cd"))
            return 1
        nameless = not file_name and error.errno == errno.ENOSPC
        what = "stdout, or a temporary file, cannot be written" if nameless else f"the file{file_name} cannot be used"
        print_error(TrtconvError(f"{what}: {error.strerror or error}", hint=_remedy(error)))
    else:  # a traceback helps nobody but us
        echo(f"internal error: {type(error).__name__}: {error_text(error)}", err=True)
        echo("  -> this is a bug of trtconv; run again with --debug and report what it prints", err=True)
    return 1
