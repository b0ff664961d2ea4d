"""What is waited for, where its end cannot be counted: imports, a model that is read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from specfit.decoding.live import Runtime
    from specfit.decoding.spec import RunSpec

PATIENCE_S, LOG_PATIENCE_S = 2.0, 60.0


@contextmanager
def waiting(
    what: str, console: Console | None = None, patience_s: float | None = None
) -> Iterator[None]:
    """Says `what` and, on a terminal, the seconds that pass; nothing where it ends in time: within
    PATIENCE_S on a terminal, LOG_PATIENCE_S in a log."""
    shown = console or Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    if patience_s is None:
        patience_s = PATIENCE_S if shown.is_terminal else LOG_PATIENCE_S
    done = threading.Event()

    def tell() -> None:
        if done.wait(patience_s):
            return
        if not shown.is_terminal:
            shown.print(what)
            return
        columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
        with Progress(*columns, console=shown, transient=True) as bar:
            bar.add_task(what, total=None)
            done.wait()

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def import_libraries() -> None:
    """torch and transformers, which take seconds, before something needs them."""
    with waiting("importing torch and transformers"):
        import specfit.decoding.live  # noqa: F401


def build_runtime(spec: RunSpec, slots: int, drafts: bool) -> Runtime:
    """A live runtime. Raises SpecfitError, as `specfit.decoding.live.build_runtime` does."""
    from specfit.decoding import live

    with waiting(f"loading model {spec.config.model.name}"):
        return live.build_runtime(spec, slots, drafts)
