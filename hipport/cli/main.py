"""The entry point: finds the command, guards the exit.

Exit status: 0 clean, 1 findings that need a person, 2 usage or internal error, 3 input that could
not be read or parsed, 130 interrupted. Commands may add more (see docs/exit-codes.md).
"""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from pathlib import Path
from typing import Any

import click

from hipport import __version__

_PACKAGE = Path(__file__).resolve().parent.parent

COMMANDS: dict[str, tuple[str, str, str]] = {
    "convert": ("hipport.cli.convert", "convert", "Convert CUDA code to HIP."),
    "check": ("hipport.cli.check", "check", "Report what a conversion would find; write nothing."),
    "verify": ("hipport.cli.verify", "verify", "Compare converted kernels with a reference."),
    "run": ("hipport.emulator.command", "run", "Run a kernel of an AMD code object on the CPU."),
    "query": ("hipport.cli.query", "query", "Look up a CUDA name."),
    "coverage": ("hipport.cli.coverage", "coverage", "Show which CUDA names a project uses."),
    "rule": ("hipport.cli.rule", "rule", "Explain a finding."),
    "doctor": ("hipport.cli.doctor", "doctor", "Show which tools hipport can use here."),
}
"""Name, then module, attribute and help; the help stands here so that listing imports nothing."""


def _exists(module: str) -> bool:
    return _PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py").is_file()


class _Stopped(Exception):
    """A key press or a closed pipe, hidden from click, which has its own ways with them."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


_INTERRUPTED = 128 + int(signal.SIGINT)
_CLOSED_PIPE = 128 + int(signal.SIGPIPE)


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise _Stopped(_INTERRUPTED) from error
        except BrokenPipeError as error:
            raise _Stopped(_CLOSED_PIPE) from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Commands that this installation has."""
        return [name for name, (module, _, _) in COMMANDS.items() if _exists(module)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        try:
            command = getattr(importlib.import_module(module), attribute)
        except ImportError as error:
            raise click.ClickException(f"{cmd_name} is not usable here: {error}") from error
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][2]) for name in self.list_commands(ctx)])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; name the nearest one where there is none."""
        if args and args[0] not in self.list_commands(ctx) and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], self.list_commands(ctx), 1)
            more = f"did you mean '{near[0]}'?" if near else "'hipport --help' lists them"
            raise click.UsageError(f"no command '{args[0]}'; {more}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="hipport", message="%(prog)s %(version)s")
def cli() -> None:
    """Turn CUDA code into HIP that builds and is right, and say where it cannot.

    \b
    hipport check .                      what a conversion would do and find
    hipport convert .                    convert a clean git work tree in place
    hipport convert . --out ../as-hip    write a converted copy instead
    """


def _say(line: str) -> None:
    text = line.encode(sys.stderr.encoding or "utf-8", "backslashreplace")
    sys.stderr.buffer.write(b"hipport: " + text.replace(b"\n", b" ") + b"\n")
    sys.stderr.flush()


def _stopped(status: int) -> int:
    if status == _INTERRUPTED:
        _say("interrupted; every file is either as it was or wholly converted")
    else:
        # The interpreter flushes standard output at exit and would complain about the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return status


def guarded(arguments: list[str] | None = None) -> int:
    """Run a command line; whatever goes wrong ends in one line and an exit status."""
    from hipport.errors import UsageError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names and sources hold characters that the terminal's encoding may lack.
            stream.reconfigure(errors="backslashreplace")
    try:
        status: Any = cli.main(args=arguments, prog_name="hipport", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        _say(error.format_message())
        return 2
    except UsageError as error:
        _say(str(error))
        return 2
    except (click.Abort, KeyboardInterrupt):
        return _stopped(_INTERRUPTED)
    except BrokenPipeError:
        return _stopped(_CLOSED_PIPE)
    except _Stopped as error:
        return _stopped(error.status)
    except Exception as error:
        if os.environ.get("HIPPORT_DEBUG"):
            import traceback

            traceback.print_exc()
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        _say(f"internal error: {what} (HIPPORT_DEBUG=1 shows where)")
        return 2


def main() -> None:
    """What the ``hipport`` command calls."""
    sys.exit(guarded())


if __name__ == "__main__":
    main()
