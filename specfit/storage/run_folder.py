"""The run folder: requests in order, each written once and whole; files assembled at the end.

runs/<run_id>/run.yaml           resolved config
runs/<run_id>/manifest.json      identity, info, requests, provenance; `finished` says so
runs/<run_id>/parts/<request>/   one folder per finished request
runs/<run_id>/*.parquet          the rows, once every request has finished
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from specfit.base.types import CycleRecord, SpecfitError
from specfit.storage import atomic
from specfit.storage.manifest import Manifest, read_manifest
from specfit.storage.request_files import (
    RESIDENCY,
    Part,
    drop_rows,
    joined,
    part_name,
    part_tables,
    parts_of,
    read_residency,
    write_part,
)
from specfit.storage.tables import FILES, read_table, write_table


class RunStore:
    """One run's folder below `runs` (results/runs or results/replays). Opening writes nothing.

    A process works on it inside `locked()`; a second one with the same id waits there and then
    finds the run finished, or goes on where the first one died.

    `patience_s` of work may wait in memory, and be lost to a kill, before it is put on disk: a
    replay's requests take milliseconds, and a part of each would take longer than the replay.
    """

    def __init__(self, runs: Path, run_id: str, patience_s: float = 0.0) -> None:
        self.runs = Path(runs)
        self.run_id = run_id
        self.folder = self.runs / run_id
        self._parts = self.folder / "parts"
        self._held = False
        self._patience_s, self._kept_at = patience_s, time.monotonic()
        self._waiting: list[Part] = []

    @contextmanager
    def locked(self, on_wait: Callable[[], None] | None = None) -> Iterator[RunStore]:
        with atomic.locked(self.runs / f".{self.run_id}.lock", on_wait):
            self._held = True
            try:
                yield self
            finally:
                self._held = False

    @property
    def manifest(self) -> Manifest | None:
        return read_manifest(self.folder)

    def is_finished(self) -> bool:
        manifest = self.manifest
        return manifest is not None and manifest.finished

    def begin(self, manifest: Manifest, run_yaml: str, force: bool = False) -> None:
        """Open the folder for work: new, or as a killed process left it; `force` starts over.

        A finished run is left as it is.
        """
        assert self._held, "work on a run inside `locked()`"
        assert manifest.info.run_id == self.run_id and not manifest.finished
        if force:
            atomic.remove_folder(self.folder)
        earlier = self.manifest
        if earlier is not None and earlier.finished:
            return
        if earlier is not None:
            if not earlier.same_run(manifest):
                raise SpecfitError(
                    f"{self.folder} holds another run under this id; force=true replaces it"
                )
            manifest = earlier.continued_by(manifest)
        elif self._parts.exists():
            atomic.remove_folder(self._parts)  # rows without a manifest
        self._parts.mkdir(parents=True, exist_ok=True)
        for folder in (self.runs, self.folder, self._parts):
            atomic.sweep(folder)
        atomic.write_text(self.folder / "run.yaml", run_yaml)
        manifest.write(self.folder)
        self._drop_after_a_hole()

    def finished_requests(self) -> list[str]:
        """Ids of the requests done so far: always a first stretch of the run's requests, because
        each one starts from the residency of the one before."""
        return list(self._requests()[: len(self._done())])

    def finished_parts(self) -> Iterator[Part]:
        """The requests done so far, as they were handed to `add` (without residency)."""
        if self.is_finished():
            yield from parts_of({name: read_table(self.folder / name) for name in FILES})
            return
        for path in self._done():
            yield from parts_of({name: joined([path], name) for name in FILES})

    def last_residency(self) -> dict[str, NDArray[Any]] | None:
        """What the last finished request left in the cache; None before the first one."""
        done = self._done()
        return read_residency(done[-1]) if done else None

    def residency_before(self, request_id: str) -> dict[str, NDArray[Any]] | None:
        """What a request of this run started from; None for the first one (an empty cache)."""
        position = self._requests().index(request_id)
        if position == 0:
            return None
        return read_residency(self._all_parts()[position - 1])

    def cycles_before(self, request_id: str | None = None) -> list[CycleRecord]:
        """What the requests before this one left, in order; None: every request finished so far."""
        requests = self._requests()
        end = len(requests) if request_id is None else requests.index(request_id)
        if self.is_finished():
            table = read_table(self.folder / "cycles.parquet")
        else:
            table = joined(self._done(), "cycles.parquet")
        rows = table.select(CycleRecord.columns()).to_pylist()
        before = set(requests[:end])
        return [CycleRecord(**row) for row in rows if row["request_id"] in before]

    def add(self, part: Part) -> None:
        """Keep a finished request. Requests come in the run's order."""
        assert self._held, "work on a run inside `locked()`"
        position = len(self._done()) + len(self._waiting)
        requests = self._requests()
        assert position < len(requests), "every request of this run is there already"
        expected = requests[position]
        assert part.request.request_id == expected, f"the next request is {expected}"
        self._waiting.append(part)
        if time.monotonic() - self._kept_at >= self._patience_s:
            for at, waiting in enumerate(self._waiting, start=position + 1 - len(self._waiting)):
                write_part(self._all_parts()[at], self.run_id, waiting)
            self._waiting, self._kept_at = [], time.monotonic()

    def has_every_residency(self) -> bool:
        """Whether each request of this finished run says what it left in the cache: a packed run's
        does not."""
        return self.is_finished() and all((p / RESIDENCY).is_file() for p in self._all_parts())

    def take_over(self, beginning: RunStore) -> None:
        """Keep the requests of a finished run that has decoded the first ones of this run."""
        for part, place in zip(beginning.finished_parts(), beginning._all_parts(), strict=True):
            self.add(replace(part, residency=read_residency(place)))

    def finish(self) -> None:
        """Assemble the run's files from its parts; `finished` in the manifest is written last."""
        assert self._held, "work on a run inside `locked()`"
        manifest, done = self.manifest, self._done()
        assert manifest is not None and not manifest.finished
        requests = len(done) + len(self._waiting)
        assert requests == len(manifest.request_ids), "some requests have not finished"
        waiting = [part_tables(self.run_id, part) for part in self._waiting]
        for name in FILES:
            rows = pa.concat_tables([joined(done, name), *(tables[name] for tables in waiting)])
            atomic.write_file(self.folder / name, partial(write_table, rows))
        replace(manifest, finished=True).write(self.folder)
        self._waiting = []
        for path in done:
            drop_rows(path)

    def _requests(self) -> list[str]:
        manifest = self.manifest
        return list(manifest.request_ids) if manifest is not None else []

    def _all_parts(self) -> list[Path]:
        """Where the part of each request is, or will be, in the run's order."""
        names = (part_name(i, request) for i, request in enumerate(self._requests()))
        return [self._parts / name for name in names]

    def _done(self) -> list[Path]:
        done: list[Path] = []
        for path in self._all_parts():
            if not path.is_dir():
                break
            done.append(path)
        return done

    def _drop_after_a_hole(self) -> None:
        """A part beyond a missing one started from a residency that this run will not repeat."""
        done = {path.name for path in self._done()}
        for path in list(self._parts.iterdir()):
            if path.name not in done:
                atomic.remove_folder(path)
