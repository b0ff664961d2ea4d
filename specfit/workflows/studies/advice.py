"""What `specfit.advise` says, against every setting over the whole workload: advice_<run id>.json.

    python -m specfit.replay recording=<id> selector=specfit cache_slots=48
    python scripts/studies/study.py advice results/replays/<run id>

The advice sees a few requests of development text; the replays it is held against are of the
recorded evaluation requests, which it never reads. A replay's rows are those of the live run.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from specfit.base.config import RunConfig
from specfit.base.types import SpecfitError
from specfit.report.intervals import clusters_in
from specfit.storage.recording.files import Recording, find_recording, read_once
from specfit.storage.rows import load_run
from specfit.workflows.advice import Tried, advise_on, settings, sources_of, try_all
from specfit.workflows.advise import facts_of, predicted, recorded
from specfit.workflows.progress import say
from specfit.workflows.studies.stored import stored_config

SLOTS = (0, 12, 24, 48)


def study(folder: Path) -> dict[str, Any]:
    results, rows = folder.parent.parent, load_run(folder)
    info = rows.info
    if info.recording is None:
        raise SpecfitError(f"{folder} is no replay")
    whole = read_once(find_recording(info.recording, results))
    asked = len(rows.request_ids)  # the recording may be of more
    whole = replace(whole, requests=whole.requests[:asked])
    config = replace(stored_config(folder, whole, results), recording=None, limit=None)
    spec = facts_of(config, ["cache_slots"])
    sources = sources_of(spec)
    short = recorded(spec, sources, say)
    predicted(spec, sources, whole, say)
    found = {}
    for slots in SLOTS:
        wanted = settings(slots, sources)
        tried, full = (_tried(config, one, wanted) for one in (short, whole))
        advised = advise_on(tried).best.setting
        say(f"{slots} slots: {advised.name} {' '.join(advised.overrides)}")
        found[slots] = [
            {
                "name": one.setting.name,
                "overrides": list(one.setting.overrides),
                "can_run": one.setting.can_run,
                "advised": one.setting == advised,
                "expected_tokens_per_s": expected.found.tokens_per_second,
                "committed_tokens": one.found.sums["committed_tokens"].tolist(),
                "decode_ns": one.found.sums["cycle_ns"].tolist(),
            }
            for expected, one in zip(tried, full, strict=True)
        ]
    return {
        "info": asdict(info),
        "requests": len(short.requests),
        "clusters": clusters_in(rows, rows.ok_ids),
        "slots": found,
    }


def _tried(config: RunConfig, recording: Recording, wanted: Any) -> list[Tried]:
    return try_all(config, recording, wanted, lambda: None)
