"""`specfit <command> ..` or `python -m specfit <command> ..`: the doors, by name."""

from __future__ import annotations

import ast
import difflib
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from specfit import __version__

COMMANDS = ("run", "record", "replay", "calibrate", "probe", "doctor", "advise", "explain", "show")
COMPLETION = "completion"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: the command's own, or 2 where there is no such command."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help", "help"):
        print(listing())
        return 0
    if words[0] == "--version":
        print(f"specfit {__version__}")
        return 0
    command, *rest = words
    if command == COMPLETION:
        return print_completion(rest)
    if command not in COMMANDS:
        close = difflib.get_close_matches(command, COMMANDS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"use one of {', '.join(COMMANDS)}"
        print(f"specfit: {command} is no command; {hint}", file=sys.stderr)
        return 2
    sys.argv = [f"specfit {command}", *rest]
    runpy.run_module(f"specfit.{command}", run_name="__main__")
    return 0


def print_completion(words: Sequence[str]) -> int:
    """Exit code: 0 after the shell's script, 2 after one sentence."""
    from specfit.base.entry import needs_extras, print_error
    from specfit.base.types import SpecfitError

    if list(words) not in (["bash"], ["zsh"]):
        print_error(SpecfitError('name a shell, as in eval "$(specfit completion bash)"; or zsh'))
        return 2
    with needs_extras():
        from specfit.workflows.completion import script_of
    print(script_of(words[0], COMMANDS))
    return 0


def listing() -> str:
    """The commands, each with the first line of its module."""
    lines = ["usage: specfit <command> [key=value ..]", ""]
    for name in COMMANDS:
        source = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
        about = " ".join((ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0].split())
        lines.append(f"  {name:10} {about.partition('`: ')[2]}")
    lines += ["", "`specfit <command> --help` lists the values of a command."]
    return "\n".join([*lines, '`eval "$(specfit completion bash)"` completes them; or zsh.'])


if __name__ == "__main__":
    sys.exit(main())
