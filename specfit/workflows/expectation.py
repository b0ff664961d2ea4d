"""What a run will take, said before it starts: a profile's arithmetic, and never a row."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from specfit.base.types import RequestError, SpecfitError
from specfit.decoding.spec import RunSpec
from specfit.hardware.hours import Experts, Work, hours_of, system_like
from specfit.hardware.profile import Profile
from specfit.report.clock_check import FOLDER
from specfit.workflows.countdown import span

LOOKED_AT = 50
"""Prompts whose length is asked; the others are taken to be like them."""

BASIS = "an estimate: answers at their longest, round figures of routing and acceptance"


def expected(spec: RunSpec, done: int = 0) -> str:
    """One sentence about the requests from `done` on; calibration and loading are not in it."""
    work, own, kind = work_of(spec, done), experts_of(spec), spec.kind
    system = system_like(spec.config.selector.name, kind.drafts, kind.reads_routes)
    here = probed_profile(Path(spec.config.results_dir), spec.device_name)
    if spec.clock == "modelled":
        billed = hours_of(system, experts_of(spec, billed=True), spec.profile, spec.slots, work)
        said = f"{span(billed.timed * 3600)} timed (modelled by profile {spec.profile.name})"
    else:
        here = spec.profile if is_complete(spec.profile) else here
        if here is None:
            return (
                f"expected: unknown, profile {spec.profile.name} has no numbers for this machine "
                "(python -m specfit.probe measures them); time left is shown after a request"
            )
        measured = hours_of(system, own, here, spec.slots, work)
        said = f"{span(measured.timed * 3600)} timed"
    if here is None:
        waited = "elapsed unknown before a request is done"
    else:
        waiting = hours_of(system, own, here, spec.slots, work).elapsed * 3600
        waited = f"{span(waiting)} elapsed (by profile {here.name})"
    return f"expected for {work.requests} requests: {said}, {waited}; {BASIS}"


def expected_recording(spec: RunSpec, requests: int) -> str:
    """Of `record`: the decoding is plain, with a cache; the passes after it are not estimated."""
    here = probed_profile(Path(spec.config.results_dir), spec.device_name)
    after = "time left is shown after a batch"
    if here is None:
        return f"expected: unknown (python -m specfit.probe measures this machine); {after}"
    plain = system_like("ar_cache", drafts=False, reads_routes=False)
    work = replace(work_of(spec, 0), requests=requests)
    decoding = hours_of(plain, experts_of(spec), here, spec.slots, work).elapsed * 3600
    return (
        f"expected for {requests} requests: {span(decoding)} elapsed to decode them (by profile "
        f"{here.name}; {BASIS}), and the passes over their pools; {after}"
    )


def experts_of(spec: RunSpec, billed: bool = False) -> Experts:
    """The target as it is, or as the model that the clock bills."""
    bill, shape = spec.billing, spec.geometry
    layers, size = bill.own_layers, bill.own_expert_bytes
    if billed:
        layers, size = bill.layers, bill.expert_bytes
    return Experts(layers, shape.experts, shape.top_k, size)


def work_of(spec: RunSpec, done: int) -> Work:
    total, lengths = len(spec.workload.ids), []
    for index in range(done, min(total, done + LOOKED_AT)):
        try:
            lengths.append(len(spec.workload.request(index).prompt_ids))
        except RequestError:
            continue
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    return Work(total - done, mean, spec.config.new_tokens)


def is_complete(profile: Profile) -> bool:
    return profile.link_gbps is not None and profile.fixed_ms is not None


def probed_profile(results: Path, device_name: str) -> Profile | None:
    """What a probe has left about this machine."""
    path = probed_file(results, device_name)
    return None if path is None else _profile_in(path)


def probed_file(results: Path, device_name: str) -> Path | None:
    """A probe's file about this machine; files that cannot be read say nothing."""
    for path in sorted((results / FOLDER).glob("*.json")):
        profile = _profile_in(path)
        if profile is not None and device_name in profile.gpu_names:
            return path
    return None


def _profile_in(path: Path) -> Profile | None:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))["profile"]
        return Profile(**values | {"gpu_names": tuple(values["gpu_names"])})
    except (OSError, ValueError, KeyError, TypeError, SpecfitError):
        return None
