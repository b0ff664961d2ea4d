"""Whether a command in a document is one: its program exists, its values make a config."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from specfit.__main__ import COMMANDS
from specfit.base.config import from_hydra
from specfit.workflows.hydra_cli import HYDRA_FLAGS
from specfit.workflows.suites.composing import composed

ROOT = Path(__file__).resolve().parents[2]
SHELL = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def commands_in(document: str) -> list[str]:
    """The lines of its shell blocks, without comments and without lines that have a <blank>."""
    lines = [line for block in SHELL.findall(document) for line in block.splitlines()]
    spoken = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return [line for line in spoken if "<" not in line]


def check_command(command: str) -> None:
    words = shlex.split(command, comments=True)
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    elif words[:2] == ["python", "-m"]:
        assert (ROOT / f"{words[2].replace('.', '/')}.py").exists()
        check_values(words[3:])
    elif words[0] == "specfit":
        assert words[1] in COMMANDS
        if words[1] not in ("explain", "show"):
            check_values(words[2:])
    else:
        script = words[1] if words[0] == "python" else words[0]
        files = {ROOT / script, (ROOT / script).with_suffix(".py")}  # a shell script passes on
        source = "".join(file.read_text(encoding="utf-8") for file in files if file.exists())
        for flag in (word for word in words[1:] if word.startswith("--")):
            assert f'"{flag}"' in source, f"{script} has no {flag}"


def check_values(words: list[str]) -> None:
    """Every job of a sweep is a config; flags are Hydra's."""
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.override_parser.overrides_parser import OverridesParser

    flags = [word for word in words if word.startswith("-")]
    assert set(flags) <= {"-m", *HYDRA_FLAGS}
    overrides = OverridesParser.create().parse_overrides([w for w in words if "=" in w])
    if not overrides:
        from_hydra(composed([]))
        return
    sweeps = any(override.is_sweep_override() for override in overrides)
    assert sweeps == ("-m" in flags), "a list is swept with -m"
    for batch in BasicSweeper.split_arguments(overrides, None):
        for job in batch:
            from_hydra(composed(job))
