"""Arrows only go down: reads every module's imports and fails on one that the table does not allow.

The top of `specfit` holds doors; every room is a folder, named with a noun of the field.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Room -> rooms it may import (its own always), lowest first.
ROOMS: dict[str, set[str]] = {
    "base": set(),
    "storage": {"base"},
    "data": {"base"},
    "hardware": {"base"},
    "selection": {"base"},
    "report": {"base", "storage"},
    "experts": {"base", "hardware"},
    "models": {"base", "experts"},
    "decoding": {"base", "storage", "data", "hardware", "selection", "experts", "models"},
    "workflows": set(),
}
ROOMS["workflows"] = set(ROOMS)
DOORS = ("run", "record", "replay", "calibrate", "probe", "doctor", "advise", "explain", "show")
TOP = {"__init__", "__main__", "api", *DOORS}
ALLOWED = (
    ROOMS
    | {door: {"base", "workflows"} for door in DOORS}
    | {"__main__": {"base", "workflows"}, "api": set(ROOMS)}
)
ALLOWED["explain"] = {"base", "storage", "report"}

# Module or package -> packages it must not reach, not even through the modules it imports.
HEAVY = {"torch", "transformers"}
UNREACHABLE: dict[str, set[str]] = {
    **{f"specfit.{room}": HEAVY for room in ("base", "storage", "data", "selection", "report")},
    **{f"specfit.hardware.{name}": HEAVY for name in ("timeline", "clock", "profile")},
    **{
        f"specfit.experts.{name}": HEAVY
        for name in ("cache", "cache_plan", "policy_cache", "eviction", "routing_traces")
    },
    **{f"specfit.experts.{name}": HEAVY for name in ("prefetch", "prefetch_plan")},
    **{f"specfit.models.routes.{name}": HEAVY for name in ("noisy", "last_token", "token_table")},
    **{
        f"specfit.decoding.{name}": HEAVY
        for name in ("decoder", "cycle", "spec", "factory", "replay")
    },
    **{f"specfit.workflows.{name}": HEAVY for name in ("simulate", "execute", "progress")},
    "specfit.explain": {"torch", "hydra", "omegaconf"},
}
UNREACHABLE["specfit.storage"] = UNREACHABLE["specfit.report"] = HEAVY | {"hydra", "omegaconf"}
# Room -> the only outside packages it may name.
OUTSIDE_ONLY: dict[str, set[str]] = {
    "specfit.base": {"numpy", "numba", "omegaconf"},
    "specfit.storage": {"numpy", "pandas", "pyarrow"},
    "specfit.report": {"numpy", "pandas", "pyarrow", "yaml", "matplotlib", "jinja2", "markupsafe"},
}


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
    """'specfit.models.target.cache' -> 'target'; 'specfit' itself -> ''."""
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
        assert imports_of(module) == {"specfit.base.library_caches"}, "before any library"
        return
    here = room(module)
    assert here in ALLOWED, f"{module}: there is no room or door named {here!r}"
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


def test_a_drawing_library_is_loaded_by_figures_alone_and_late() -> None:
    drawn = {m for m in MODULES if any(n.split(".")[0] == "matplotlib" for n in imports_of(m))}
    assert drawn == {"specfit.report.figures"}
    tree = ast.parse(MODULES["specfit.report.figures"].read_text(encoding="utf-8"))
    early = {name for node in tree.body for name in imports_in_statement(node)}
    assert not any(name.startswith("matplotlib") for name in early), "a table is text"


def imports_in_statement(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from imports_in(ast.Module([node], []), "", frozenset(MODULES))


def test_the_top_holds_doors_and_nothing_else() -> None:
    assert {path.stem for path in (ROOT / "specfit").glob("*.py")} == TOP
    folders = {path.parent.name for path in (ROOT / "specfit").glob("*/__init__.py")}
    assert folders == set(ROOMS)


def test_nothing_imports_a_door() -> None:
    doors = {f"specfit.{door}" for door in (*DOORS, "api", "__main__")}
    for module in MODULES:
        assert not imports_of(module) & doors, f"{module} imports a door"


def test_nothing_in_the_package_reaches_into_scripts() -> None:
    path = re.compile(r"""/ ["']scripts["']|["']scripts/[a-z_/]*["'] */""")
    for module, file in MODULES.items():
        assert not path.search(file.read_text(encoding="utf-8")), f"{module} builds such a path"


def test_the_reader_sees_an_upward_import() -> None:
    tree = ast.parse("from specfit import run\nfrom ..base.types import X\nimport torch.nn as nn")
    seen = set(
        imports_in(tree, "specfit.experts", frozenset({"specfit.run", "specfit.base.types"}))
    )
    assert seen == {"specfit.run", "specfit.base.types", "torch.nn"}
