"""One sentence and exit code 2 at every entry point, whatever is missing or wrong around it.

Imports nothing but the standard library: it must work where nothing else is installed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from specfit.base.types import SpecfitError


def _age_s() -> float:
    """Seconds that this process had lived when this module was imported, which every entry point
    does before anything large; 0 where the system does not say."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        began = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # starttime of proc(5), after boot
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - began
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0
    return age if 0 <= age < LONGEST_START_S else 0.0  # a container may count from elsewhere


LONGEST_START_S = 60.0
BEGUN = time.monotonic() - _age_s()

INTERRUPTED = 130  # 128 + SIGINT, as shells count
EXTRA = {
    "matplotlib": "figures",
    "jinja2": "figures",
    "yaml": "figures",
    "hydra_plugins": "joblib,slurm",
    "joblib": "joblib",
    "ray": "ray",
    "submitit": "slurm",
    "pytest": "dev",
    "triton": "dev",
}
"""Module -> the extra that installs it; `run` has all others."""
ALONE = ("gguf", "llama_cpp")
"""Modules that no extra has: one script needs each."""


def waited_s() -> float:
    """Seconds since this process was started: imports, loading, calibration, everything."""
    return time.monotonic() - BEGUN


def print_error(error: Exception) -> None:
    """The error as one line on stderr."""
    print(f"specfit: {one_line(error)}", file=sys.stderr)


def one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def needs_extras() -> Iterator[None]:
    """Around an entry point's imports: a base install ends with one sentence and exit code 2."""
    try:
        yield
    except ModuleNotFoundError as error:
        sentence = absent_module(error)
        if sentence is None:
            raise
        print_error(SpecfitError(sentence))
        raise SystemExit(2) from None


def absent_module(error: ImportError) -> str | None:
    """What to install, for a module of another package; None for a defect of ours."""
    top = str(error.name or "").split(".")[0]
    if not isinstance(error, ModuleNotFoundError) or top in ("", "specfit", "scripts", "tests"):
        return None
    extra = EXTRA.get(top, "run")
    if top in ALONE:
        return f"this needs {top}, which is not installed; pip install {top}"
    return f"this needs {top}, which is not installed; pip install 'specfit[{extra}]'"


def cannot_use(error: OSError) -> str:
    """What the system refuses, with its path where the error has one."""
    names = [str(name) for name in (error.filename, error.filename2) if name]
    where = f" {' and '.join(names)}" if names else ""
    return f"cannot use{where} ({error.strerror or one_line(error)}); see results_dir and paths"


@contextmanager
def reading(path: object, form: str) -> Iterator[None]:
    """Around the reading of a file from elsewhere: one that is not of this form is named."""
    try:
        yield
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, EOFError) as error:
        why = f"{type(error).__name__}: {one_line(error)}"
        raise SpecfitError(f"{path} cannot be read as {form} ({why})") from None


def script(main: Callable[[], int | None]) -> int:
    """A script's exit code: its own, or 2 after one sentence for what is wrong with its input.

    A defect of ours keeps its traceback.
    """
    try:
        return main() or 0
    except SpecfitError as error:
        print_error(error)
    except KeyboardInterrupt:
        print_error(SpecfitError("interrupted; the same command goes on after what is finished"))
        return INTERRUPTED
    except BrokenPipeError:  # the reader, such as head, has seen enough
        sys.stderr.close()
        return 2
    except ModuleNotFoundError as error:
        sentence = absent_module(error)
        if sentence is None:
            raise
        print_error(SpecfitError(sentence))
    except OSError as error:
        print_error(SpecfitError(cannot_use(error)))
    except MemoryError as error:
        print_error(SpecfitError(f"out of memory ({one_line(error)}); ask for less"))
    return 2
