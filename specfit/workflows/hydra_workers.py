"""Jobs of a sweep in other processes: how each ended, and what can be wrong there.

A launcher (joblib, submitit, Ray) pickles what a job returns, brings it back and does not show it;
an exception would end the batch. So a job returns a `JobResult`, whose unpickling in this
process prints its sentence and keeps its exit code and folders.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import uuid
import warnings
from collections.abc import Sequence
from typing import Any

from specfit.base.entry import print_error
from specfit.base.types import SpecfitError

# Choice of hydra/launcher -> the module that has it, and our extra that installs it.
LAUNCHERS = {
    "joblib": ("hydra_plugins.hydra_joblib_launcher", "joblib"),
    "ray": ("hydra_plugins.hydra_ray_launcher", "ray"),
    "submitit_local": ("hydra_plugins.hydra_submitit_launcher", "slurm"),
    "submitit_slurm": ("hydra_plugins.hydra_submitit_launcher", "slurm"),
}
PROGRAMS = {"submitit_slurm": ("sbatch", "srun")}
"""What a launcher calls, beside its library."""
LIBRARIES = ("joblib.", "ray.", "submitit.")  # whose errors mean a worker, not a defect of ours

# conf/hydra/launcher/*.yaml have the launchers' own names, so that hydra/launcher=joblib is one of
# ours, and are checked against their schemas. Hydra 1.3 matches the two by name and warns that a
# later one will not. On import, since a worker composes its config before it runs anything of ours.
warnings.filterwarnings("ignore", r"\s*'hydra/launcher/\w+' is validated against", UserWarning)

exit_codes: dict[str, int] = {}
"""Exit codes of jobs that came home, by token: some launchers read a result twice."""


finished_runs: list[str] = []
"""Folders of a sweep's finished runs, of this process and of those that came home."""


class JobResult(Exception):  # noqa: N818 - it says how a job ended, and is no error of ours
    """How a job of another process ended: its exit code, why it is bad unless that was said there,
    and the folders of what it finished."""

    def __init__(
        self,
        code: int,
        sentence: str = "",
        token: str | None = None,
        folders: tuple[str, ...] = (),
    ) -> None:
        super().__init__(code)
        self.code, self.sentence, self.token = code, sentence, token or uuid.uuid4().hex
        self.folders = folders

    def __reduce__(self) -> tuple[Any, ...]:
        return keep_exit_code, (self.code, self.sentence, self.token, self.folders)


def keep_exit_code(
    code: int, sentence: str, token: str, folders: tuple[str, ...] = ()
) -> JobResult:
    if token not in exit_codes:
        if sentence:
            print_error(SpecfitError(sentence))
        finished_runs.extend(folders)
    exit_codes[token] = code
    return JobResult(code, sentence, token, folders)


def here() -> tuple[str, int]:
    """This process, among those of every machine of a sweep."""
    return platform.node(), os.getpid()


def prepare_worker() -> None:
    """In a worker: bars of several jobs in one terminal would overwrite each other."""
    os.environ["TTY_COMPATIBLE"] = "0"


# -- what can be wrong with a launcher -------------------------------------------------------------


def refuse_absent(arguments: Sequence[str]) -> None:
    """Raises SpecfitError for a launcher that is not installed: Hydra would find no class."""
    for argument in arguments:
        key, _, name = argument.partition("=")
        if key == "hydra/launcher" and name in LAUNCHERS:
            module, extra = LAUNCHERS[name]
            if not is_installed(module):
                raise SpecfitError(
                    f"hydra/launcher={name} is not installed; pip install 'specfit[{extra}]'"
                )
            absent = [tool for tool in PROGRAMS.get(name, ()) if shutil.which(tool) is None]
            if absent:
                raise SpecfitError(
                    f"hydra/launcher={name} needs {' and '.join(absent)}, and no folder of PATH "
                    "has it; start it where jobs are submitted, or use hydra/launcher=joblib"
                )


def log_lines(arguments: Sequence[str]) -> list[str]:
    """Where jobs of submitit, which have no terminal, have written what they print."""
    said = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    if not said.get("hydra/launcher", "").startswith("submitit"):
        return []
    folder = f"{said.get('results_dir', 'results')}/sweeps/submitit"
    return [f"each job's own lines: {folder}/<job>/<job>_0_log.out, and .err beside it"]


def is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False


def _raised_in(error: BaseException) -> str:
    """The module whose line raised it, as in `submitit.slurm.slurm`."""
    at, name = error.__traceback__, ""
    while at is not None:
        name, at = str(at.tb_frame.f_globals.get("__name__", "")), at.tb_next
    return name


def lost_worker(error: BaseException) -> str | None:
    """A sentence where a launcher's library says that a worker died or was never there."""
    first = next(iter(str(error).strip().splitlines()), "")
    if not any(kind.__module__.startswith(LIBRARIES) for kind in type(error).__mro__):
        if not _raised_in(error).startswith(("ray.", "submitit.")):
            return None
        return f"the launcher cannot start its jobs ({type(error).__name__}: {first})"
    return (
        f"a worker of the sweep was lost ({type(error).__name__}: {first}); "
        "the same command goes on after the last finished requests"
    )
