"""A logger as the decoder's surroundings see it: one more that watches a run go by."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from specfit.decoding.cycle import Cycle
from specfit.decoding.spec import RunSpec
from specfit.storage.request_files import Part
from specfit.workflows.loggers.background import Background, Sink
from specfit.workflows.loggers.metrics import closing_of, request_metrics


class Logger:
    """Use as a context manager around a run: leaving it waits for what is still to be sent.

    Without a `background` (logger=none) nothing is done.
    """

    def __init__(self, spec: RunSpec, background: Background | None) -> None:
        self._spec, self._background = spec, background
        self._timed = "modelled" if spec.clock == "modelled" else "measured"
        self._seen, self._ended = 0, False

    def __enter__(self) -> Logger:
        if self._background is not None:
            spec = self._spec
            name = f"{spec.config.selector.name}, {spec.slots} slots, {spec.config.dataset.name}"
            config = spec.settled() | {"clock": spec.clock, "device_name": spec.device_name}
            self._background.put(lambda sink: sink.begin(name, config))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._background is None:
            return
        if not self._ended:
            self._background.put(lambda sink: sink.end(None))
        self._background.close(self._spec.config.logger.wait_s)

    # -- what it sees --------------------------------------------------------------------------

    def calibrates(self) -> None:
        """Nothing is logged of it."""

    def starts(self, total: int, done: int) -> None:
        self._seen = done

    def sees_cycle(self, cycle: Cycle) -> None:
        """A request is the smallest thing that is logged."""

    def finishes_request(self, part: Part) -> None:
        number, self._seen = self._seen, self._seen + 1
        if self._background is not None:
            timed = self._timed
            self._background.put(lambda sink: sink.request(number, request_metrics(part, timed)))

    def finished(self, folder: Path) -> None:
        """A run that was found finished is logged as well: its table, rows and figures."""
        self._ended = True
        if self._background is not None:
            results = Path(self._spec.config.results_dir)
            self._background.put(lambda sink: sink.end(closing_of(folder, results)))


class Together:
    """Several watchers as one, told in this order."""

    def __init__(self, *watchers: Any) -> None:
        self._watchers: Sequence[Any] = watchers

    def calibrates(self) -> None:
        for watcher in self._watchers:
            watcher.calibrates()

    def starts(self, total: int, done: int) -> None:
        for watcher in self._watchers:
            watcher.starts(total, done)

    def sees_cycle(self, cycle: Cycle) -> None:
        for watcher in self._watchers:
            watcher.sees_cycle(cycle)

    def finishes_request(self, part: Part) -> None:
        for watcher in self._watchers:
            watcher.finishes_request(part)


def logger_of(spec: RunSpec) -> Logger:
    """Started before anything is loaded, so that its imports are done when the clock runs."""
    config = spec.config.logger
    if config.name == "none":
        return Logger(spec, None)

    def make() -> Sink:
        from specfit.workflows.loggers.wandb import WandbSink

        return WandbSink(config, Path(spec.config.results_dir))

    def warn(text: str) -> None:
        print(f"specfit: logger {config.name} {text}", file=sys.stderr)

    def say(text: str) -> None:
        print(f"logger {config.name}: {text}")

    return Logger(spec, Background(make, say, warn))
