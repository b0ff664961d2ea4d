"""Arrows only go down: reads every module's imports and fails on one the design does not allow.

A room is a module or sub-package directly below `specfit`, named as in the design's table.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAX_LINES = 300

# Room -> rooms it may import (its own always). Protocols hold the types that parts hand each other,
# so whoever implements one may name them.
PARTS: dict[str, set[str]] = {
    "core": set(),
    "protocols": {"core"},
    "plugins": {"core"},
    "profile_file": {"core"},
    "config": {"core", "profile_file"},
    "hashing": set(),
    "target": {"core", "protocols", "offload"},
    "drafter": {"core", "protocols", "hashing"},
    "offload": {"core", "hardware"},
    "selection": {"core", "protocols", "plugins"},
    "routes": {"core", "protocols", "hashing"},
    "hardware": {"core", "protocols"},
    "workloads": {"core"},
    "results": {"core"},
    # The decoder's room is three modules: how a path is accepted, what a cycle leaves, the cycle.
    "acceptance": {"core"},
    "cycle": {"core", "protocols"},
    "decoder": {"core", "protocols", "acceptance", "cycle"},
    "conf": set(),
}
# What entry points share, lowest first; each may import every part and what stands above it here.
SHARED = (
    "facts",
    "movement",
    "workload",
    "recorded",
    "assembly",
    "sizing",
    "resolve",
    "scripted",
    "build",
    "workers",
    "commands",
    "probing",
    "fitting",
    "calibrate",
    "execution",
    "measuring",
    "probed",
    "teaching",
    "batches",
    "recorder",
    "predicting",
    "rehearsal",
    "advising",
    "countdown",
    "expectation",
    "console",
    "loggers",
    "tracing",
)
ENTRY_POINTS = ("run", "record", "replay", "probe", "doctor", "advise", "explain", "suites")
ALLOWED: dict[str, set[str]] = {
    **PARTS,
    **{name: set(PARTS) | set(SHARED[:i]) for i, name in enumerate(SHARED)},
    **{name: set(PARTS) | set(SHARED) | set(ENTRY_POINTS) for name in ENTRY_POINTS},
}

# Module or package -> packages it must not reach, not even through the modules it imports.
UNREACHABLE: dict[str, set[str]] = {
    "specfit.offload.cache": {"torch"},
    "specfit.offload.policy": {"torch"},
    "specfit.selection": {"torch"},
    "specfit.hardware.timeline": {"torch"},
    "specfit.routes.noisy": {"torch"},
    "specfit.routes.last_token": {"torch"},
    "specfit.routes.token_table": {"torch"},
    "specfit.results": {"torch", "hydra", "omegaconf", "matplotlib"},
    "specfit.explain": {"torch", "hydra", "omegaconf"},
    "specfit.offload.traces": {"torch"},
    "specfit.recorded": {"torch", "transformers"},
    "specfit.assembly": {"torch", "transformers"},
}
# Module or package -> the only outside packages it may name.
OUTSIDE_ONLY: dict[str, set[str]] = {
    "specfit.core": {"numpy"},
    "specfit.protocols": {"numpy"},
    "specfit.results": {"numpy", "pandas", "pyarrow"},
}
# Scripts that draw or tabulate read rows and nothing else of ours (and know our error).
ROW_SCRIPTS = (
    "figure_*.py",
    "table_*.py",
    "drawing/*.py",
    "artefacts.py",
    "report.py",
    "reporting/*.py",
)
ROWS = ("specfit.results", "specfit.core")


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted((ROOT / "specfit").rglob("*.py"))}


def imports_in(tree: ast.AST, package: str, modules: frozenset[str]) -> Iterator[str]:
    """Dotted names this syntax tree imports; `from a import b` gives a.b where that is a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join(above + ([base] if base else []))
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield inner if inner in modules else base


@cache
def imports_of(module: str) -> frozenset[str]:
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    return frozenset(imports_in(tree, package, frozenset(MODULES)))


def room(module: str) -> str:
    """'specfit.target.cache' -> 'target'; 'specfit' itself -> ''."""
    return module.split(".")[1] if "." in module else ""


def inside(module: str, wanted: str) -> bool:
    return module == wanted or module.startswith(wanted + ".")


def reachable(module: str) -> set[str]:
    """Every name loaded by importing `module`, the packages above each module included."""
    seen: set[str] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in MODULES:
            todo += imports_of(name)
        if "." in name:
            todo.append(name.rpartition(".")[0])
    return seen


@pytest.mark.parametrize("module", sorted(MODULES))
def test_module_imports_only_rooms_below(module: str) -> None:
    if module == "specfit":
        assert not imports_of(module), "specfit/__init__ imports nothing"
        return
    here = room(module)
    assert here in ALLOWED, f"{module}: the design's table has no room named {here!r}"
    ours = {name for name in imports_of(module) if inside(name, "specfit")}
    upward = sorted(name for name in ours if room(name) not in ALLOWED[here] | {here, ""})
    assert not upward, f"{module} imports {upward}; {here} may import {sorted(ALLOWED[here])}"


def test_no_module_imports_itself_in_the_end() -> None:
    done: set[str] = set()

    def visit(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " -> ".join((*above[above.index(module) :], module))
        if module not in done:
            for name in sorted(imports_of(module) & set(MODULES)):
                visit(name, (*above, module))
            done.add(module)

    for module in MODULES:
        visit(module, ())


@pytest.mark.parametrize("wanted", sorted(UNREACHABLE))
def test_pure_modules_reach_no_heavy_package(wanted: str) -> None:
    for module in MODULES:
        if inside(module, wanted):
            tops = {name.split(".")[0] for name in reachable(module)}
            heavy = sorted(tops & UNREACHABLE[wanted])
            assert not heavy, f"{module} reaches {heavy}"


@pytest.mark.parametrize("wanted", sorted(OUTSIDE_ONLY))
def test_outside_packages_are_the_listed_ones(wanted: str) -> None:
    allowed = OUTSIDE_ONLY[wanted] | set(sys.stdlib_module_names) | {"specfit"}
    for module in MODULES:
        if inside(module, wanted):
            tops = {name.split(".")[0] for name in imports_of(module)}
            assert tops <= allowed, f"{module} imports {sorted(tops - allowed)}"


def test_figure_and_table_scripts_import_results_only() -> None:
    for pattern in ROW_SCRIPTS:
        for path in (ROOT / "scripts").glob(pattern):
            names = set(imports_in(ast.parse(path.read_text()), "", frozenset(MODULES)))
            ours = {name for name in names if inside(name, "specfit")}
            bad = sorted(name for name in ours if not any(inside(name, room) for room in ROWS))
            bad += sorted({name.split(".")[0] for name in names} & {"torch", "hydra", "omegaconf"})
            assert not bad, f"{path.name} imports {bad}; it reads rows through specfit.results"


def test_tables_are_made_without_a_drawing_library() -> None:
    for path in (ROOT / "scripts").glob("table_*.py"):
        names = set(imports_in(ast.parse(path.read_text()), "", frozenset(MODULES)))
        drawn = {name.split(".")[0] for name in names} & {"matplotlib", "drawing"}
        assert not drawn, f"{path.name} imports {drawn}; a table is text"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_module_is_short(module: str) -> None:
    lines = len(MODULES[module].read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_LINES, f"{module} has {lines} lines; {MAX_LINES} is the limit"


def test_the_reader_sees_an_upward_import() -> None:
    tree = ast.parse("from specfit import run\nfrom ..core import X\nimport torch.nn as nn")
    seen = set(imports_in(tree, "specfit.offload", frozenset({"specfit.run", "specfit.core"})))
    assert seen == {"specfit.run", "specfit.core", "torch.nn"}
