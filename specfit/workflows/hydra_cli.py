"""Hydra around an entry point: one sentence and exit code 2 for what is wrong with a run.

Hydra exits 1 on a bad override and `sys.exit` inside a job ends a whole sweep, so jobs raise
SpecfitError, and the sentence is printed and the code chosen out here. A sweep whose line cannot be
composed runs nothing; a job of it that fails stops no other.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from specfit import __version__
from specfit.base.config import RunConfig, declared, from_hydra
from specfit.base.entry import INTERRUPTED, absent_module, cannot_use, one_line, print_error
from specfit.base.paths import CONF, PACKAGE
from specfit.base.types import SpecfitError
from specfit.workflows import hydra_workers
from specfit.workflows.command_help import help_template
from specfit.workflows.hydra_workers import JobResult

TEXTS = (
    *("results_dir", "path", "dataset_path", "profile", "tokenizer", "recording", "trace"),
    *("template", "system", "repository", "revision", "hub"),
)
SAMPLING = ("temperature", "top_p", "top_k", "min_p", "do_sample", "num_beams")
HYDRA_FLAGS = (
    *("--help", "--hydra-help", "--version", "--cfg", "--resolve", "--package", "--run"),
    *("--multirun", "--shell-completion", "--config-path", "--config-name", "--config-dir"),
    *("--experimental-rerun", "--info"),
)
SETS_MODE = ("hydra.mode", "hydra.searchpath", "--config")
ALIASES = {"record.from": "record.source"}  # `from` is a word of Python's own


def hydra_command(job: Callable[[Any], int]) -> int:
    """Run `job` on the config composed from argv (or on each of a sweep); returns the exit code."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # else Hydra prints a traceback and exits 1 by itself
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import hydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    store_schema(job.__name__)
    codes: list[int] = []
    hydra_workers.exit_codes.clear()
    hydra_workers.finished_runs.clear()
    try:
        if sys.argv[1:] == ["--version"]:
            print(f"specfit {__version__}")
            return 0
        sys.argv[1:] = [spelled(argument) for argument in sys.argv[1:]]
        refuse_sampling(sys.argv[1:])
        refuse_flags(sys.argv[1:])
        hydra_workers.refuse_absent(sys.argv[1:])
        sweep_first(sys.argv)
        ask_no_mode()
        hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")(
            task_of(job, codes)
        )()
    except SpecfitError as error:
        print_error(error)
        codes.append(2)
    except (HydraException, OmegaConfBaseException) as error:
        print_error(SpecfitError(explain(error)))
        codes.append(2)
    except KeyboardInterrupt:
        print_error(SpecfitError("interrupted; the same command goes on after the last request"))
        return INTERRUPTED
    except Exception as error:
        lost = hydra_workers.lost_worker(error)
        if lost is None:
            raise
        print_error(SpecfitError(lost))
        codes.append(2)
    codes += hydra_workers.exit_codes.values()
    close_sweep()
    for line in hydra_workers.log_lines(sys.argv[1:]):
        print(line)
    return 2 if 2 in codes else max(codes, default=0)


def close_sweep() -> None:
    """One table of everything that a sweep has run."""
    folders = list(dict.fromkeys(hydra_workers.finished_runs))
    if not folders:
        return
    from specfit.report.comparison import sweep_table
    from specfit.storage.rows import load_run
    from specfit.workflows.progress import say

    for line in sweep_table([load_run(folder) for folder in folders]):
        say(line)


def task_of(job: Callable[[Any], int], codes: list[int]) -> Callable[[Any], JobResult | None]:
    """What Hydra calls with each config of a sweep, in this process or in a launcher's worker."""
    home = hydra_workers.here()

    def task(composed: Any) -> JobResult | None:
        """`codes` of another process is a copy: from there the end of a job is sent home."""
        if hydra_workers.here() != home:
            hydra_workers.prepare_worker()
            hydra_workers.finished_runs.clear()
            code, sentence = attempt(job, composed)
            return JobResult(code, sentence, folders=tuple(hydra_workers.finished_runs))
        codes.append(guarded(job, composed))
        return None

    return task


def guarded(job: Callable[[Any], int], composed: Any) -> int:
    """The job's exit code; 2, after a sentence, where the run could not be done."""
    code, sentence = attempt(job, composed)
    if sentence:
        print_error(SpecfitError(sentence))
    return code


def attempt(job: Callable[[Any], int], composed: Any) -> tuple[int, str]:
    """The job's exit code, and a sentence where the run could not be done."""
    try:
        return job(composed), ""
    except SpecfitError as error:
        return 2, one_line(error)
    except OSError as error:
        return 2, cannot_use(error)
    except ModuleNotFoundError as error:
        absent = absent_module(error)
        if absent is None:
            raise
        return 2, absent
    except (MemoryError, RuntimeError) as error:
        trouble = device_trouble(error)
        if trouble is not None:
            return 2, trouble
        if not is_out_of_memory(error):
            raise
        size = str(error).splitlines()[0] if str(error) else "size unknown"
        return 2, (
            f"out of memory ({size}; {free_memory()}); lower cache_slots, prefill_chunk or "
            "model.num_layers; finished requests are kept"
        )


# -- what is refused before Hydra sees it ----------------------------------------------------------


def spelled(argument: str) -> str:
    """With the schema's name of a key that has another on the command line."""
    key, equals, value = argument.partition("=")
    return ALIASES.get(key, key) + equals + value


def refuse_sampling(arguments: Sequence[str]) -> None:
    for argument in arguments:
        stripped = argument.lstrip("+~-")
        key = stripped.split("=")[0].split(".")[-1]
        if key in SAMPLING and not stripped.startswith("drafter.top_k"):
            raise SpecfitError(
                f"{argument} asks for sampling; specfit decodes greedily, as the paper does, since "
                "only greedy output can be compared token by token"
            )


def refuse_flags(arguments: list[str]) -> None:
    """Hydra's own parser would print its usage, which does not say what is wrong with --limit 3."""
    for argument in arguments:
        flag = argument.split("=")[0]
        if flag.startswith("--") and not any(known.startswith(flag) for known in HYDRA_FLAGS):
            key = flag.lstrip("-").replace("-", "_")
            raise SpecfitError(f"{flag} is no option; values are set as {key}=<value>")


def sweep_first(arguments: list[str]) -> None:
    """Hydra's parser takes `-m` before or after all overrides, but not between them."""
    for flag in ("-m", "--multirun"):
        if flag in arguments:
            arguments.remove(flag)
            arguments.insert(1, flag)


def ask_no_mode() -> None:
    """Hydra composes a config whole, a fifth of a second, only to read hydra.mode, and then again
    to run it. Our files leave the mode to `-m`; Hydra asks where other files or a value may not."""
    from hydra._internal.hydra import Hydra

    own = Hydra.get_mode
    if own.__module__ == __name__:
        return  # a command before this one has seen to it

    def mode(hydra: Any, config_name: str | None, overrides: list[str]) -> Any:
        said = any(word in argument for argument in sys.argv[1:] for word in SETS_MODE)
        return own(hydra, config_name, overrides) if said else None

    Hydra.get_mode = mode  # type: ignore[method-assign, assignment]


def device_trouble(error: Exception) -> str | None:
    """What is wrong with the GPU or its driver, and not with the work it was given."""
    text = str(error).casefold()
    if "busy or unavailable" in text:
        return "the GPU is busy: another process has it alone; wait for it, or use device=cpu"
    if "no cuda-capable device" in text or "no nvidia driver" in text:
        return "no usable GPU or driver was found (see nvidia-smi); use device=cpu"
    if "driver version is insufficient" in text or "driver on your system is too old" in text:
        return "the GPU's driver is older than this PyTorch needs; update it, or use device=cpu"
    return None


# -- sentences -------------------------------------------------------------------------------------


def explain(error: Exception) -> str:
    """What Hydra or OmegaConf refuses, without its advice on how to write Hydra configs."""
    options = getattr(error, "options", None)
    if options is not None:
        group, _, chosen = str(getattr(error, "missing_cfg_file", "")).rpartition("/")
        return f"{group}={chosen} is unknown; use one of {', '.join(options)}"
    lines = [line for line in str(error).splitlines() if line and "hydra.cc" not in line]
    first = lines[0] if lines else type(error).__name__
    if first.startswith("Could not override"):
        return unknown_key(first.split("'")[1])
    if first.startswith("Ambiguous value for argument"):
        text = named_in(first)
        form = quoted_form(text) if is_text(text) else None
        return f"{text} names several values; add -m to run them one by one" + (
            f", or for one path with a comma write {form}" if form else ""
        )
    refused = getattr(error, "override", None)  # of Hydra's parser, else in its sentence
    if refused is None and first.startswith("Error parsing override"):
        refused = named_in(first)
    if refused is not None:
        form = quoted_form(refused) if is_text(refused) else None
        if form is None:
            return f"{refused!r} is not key=value, as in cache_slots=12"
        return f"{refused} has characters of Hydra's grammar; to mean them as they are write {form}"
    cause = str(error.__cause__ or "").splitlines()
    return f"{first}: {cause[0]}" if cause else " ".join(lines)


def named_in(sentence: str) -> str:
    """What Hydra's sentence has in quotes, quotes of its own included."""
    return sentence[sentence.index("'") + 1 : sentence.rindex("'")]


def is_text(override: str) -> bool:
    """Whether the value is one that may have any character: a path, or words for a model."""
    key, _, value = override.partition("=")
    return "/" in value or key.split(".")[-1] in TEXTS


def quoted_form(override: str) -> str | None:
    """`key=value` so that a shell and Hydra take the value as it stands, ready to paste; None where
    it is no key and value."""
    key, equals, value = override.partition("=")
    return shlex.quote(as_text(key, value)) if equals and key.strip() and value else None


def as_text(key: str, value: object) -> str:
    """The override that gives `key` this text, whatever characters it has (as of a path)."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    text, parser = str(value), OverridesParser.create()
    escaped = text.replace("${", "\\${")
    for form in (escaped, *(f"{q}{_inside(escaped, q)}{q}" for q in "\"'")):
        try:
            parsed = parser.parse_override(f"{key}={form}").value()
        except HydraException:
            continue
        if parsed == escaped:
            return f"{key}={form}"
    raise SpecfitError(f"{key}: {text!r} has characters that Hydra cannot take; use another name")


def _inside(text: str, quote: str) -> str:
    """Hydra's quoting: a backslash before the quote, and twice the backslashes before one."""
    made = re.sub(rf"(\\*){quote}", rf"\1\1\\{quote}", text)
    return re.sub(r"(\\+)$", r"\1\1", made)


def unknown_key(key: str) -> str:
    if key == "experiment":
        return f"experiments are suites: make reproduce SUITE=<name>; {suites()}"
    close = difflib.get_close_matches(key, list(known_keys()), n=1)
    hint = f"did you mean {close[0]}?" if close else "--help lists every key"
    return f"unknown key {key}; {hint}"


def suites() -> str:
    """The names in experiments/, of a checkout."""
    folder = PACKAGE.parent / "experiments"
    names = sorted(path.stem for path in folder.glob("*.yaml")) if folder.is_dir() else []
    return f"suites are {', '.join(names)}" if names else "they are in the repository"


def known_keys() -> Iterator[str]:
    """Groups and dotted keys of the schema."""
    yield from (name for name, _ in declared())


def is_out_of_memory(error: Exception) -> bool:
    """numpy, CPU torch and CUDA each say it in their own way."""
    named = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return named or "allocate memory" in str(error) or "out of memory" in str(error).lower()


def free_memory() -> str:
    try:
        pages, size = os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return "free host memory unknown"
    return f"{pages * size / 1e9:.1f} GB of host memory free"


# -- composing -------------------------------------------------------------------------------------


def compose(overrides: list[str]) -> Any:
    """The config of `python -m specfit.run <overrides>`, for scripts and tests."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    store_schema()
    overrides = [spelled(argument) for argument in overrides]
    if GlobalHydra.instance().is_initialized():  # inside a command, by its own search path
        return hydra_compose("config", overrides)
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return hydra_compose("config", overrides)


def chosen(overrides: Sequence[str]) -> RunConfig:
    """The config of these overrides alone, which name no file; composed once in a process."""
    from hydra.core.global_hydra import GlobalHydra

    hydra = GlobalHydra.instance()
    places = hydra.config_loader().get_search_path().get_path() if hydra.is_initialized() else ()
    return _chosen(tuple(overrides), tuple(str(place.path) for place in places))


@lru_cache(maxsize=256)
def _chosen(overrides: tuple[str, ...], places: tuple[str, ...]) -> RunConfig:
    """`places` are the folders that groups are looked for in."""
    return from_hydra(compose(list(overrides)))


def config_of(overrides: Sequence[str]) -> RunConfig:
    """Composed, checked and frozen. Raises SpecfitError, as the command would say it."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    refuse_sampling(overrides)
    try:
        return from_hydra(compose(list(overrides)))
    except (HydraException, OmegaConfBaseException) as error:
        raise SpecfitError(explain(error)) from None


def store_schema(command: str = "run") -> None:
    """The schema that conf/config.yaml begins with, and `--help` of this command."""
    from hydra.core.config_store import ConfigStore

    store = ConfigStore.instance()
    if "schema.yaml" not in store.repo:  # it never changes
        store.store(name="schema", node=RunConfig)
    store.store(group="hydra/help", name="specfit", node={"template": help_template(command)})
