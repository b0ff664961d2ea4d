"""What is waited for, where its end cannot be counted: imports, a model that is read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

PATIENCE_S, LOG_PATIENCE_S = 2.0, 30.0


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
