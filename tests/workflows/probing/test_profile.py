"""The probe of a tiny pair on this CPU: trials, constants, the file, and who finds it again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("hydra")

from specfit.base.config import GpuConfig, RunConfig, apply_profile, from_hydra  # noqa: E402
from specfit.base.types import SpecfitError  # noqa: E402
from specfit.decoding.spec import profile_of  # noqa: E402
from specfit.report.clock_check import FOLDER, busy_lines, clock_sentence  # noqa: E402
from specfit.workflows.hydra_cli import compose  # noqa: E402
from specfit.workflows.probing.probe import report  # noqa: E402
from specfit.workflows.probing.profile import SYSTEMS, Probed, fit_trials, probe_machine  # noqa: E402
from specfit.workflows.probing.trials import Bench, Trial, settled  # noqa: E402
from specfit.workflows.run_time import probed_profile  # noqa: E402
from tests.fakes.tiny_model import RUN_EXPERTS, Runnable  # noqa: E402


@pytest.fixture(scope="module")
def config(runnable: Runnable) -> RunConfig:
    said = ["limit=2", "max_new_tokens=8", "cache_slots=4", "gpu=local"]
    return from_hydra(compose([*runnable.overrides, *said]))


@pytest.fixture(scope="module")
def found(config: RunConfig) -> Probed:
    return probe_machine(config, 4)


def test_a_cpu_is_probed_in_every_state_that_runs_have(config: RunConfig) -> None:
    trials = fit_trials(config)
    slots = {name: trial.spec.slots for name, trial in trials.items()}
    assert slots == {
        "resident_ar": RUN_EXPERTS,
        "resident_few": RUN_EXPERTS,
        "resident_tree": RUN_EXPERTS,
        "streamed_ar": 0,
        "streamed_tree": 0,
        "searched": RUN_EXPERTS,
        "evicting_ar": RUN_EXPERTS // 4,
        "evicting_tree": RUN_EXPERTS // 4,
    }
    assert all(trial.spec.clock == "wall" for trial in trials.values())
    assert trials["resident_few"].spec.config.selector.k == 2


def test_every_system_is_held_against_the_clock(found: Probed) -> None:
    assert [c.system for c in found.compared] == list(SYSTEMS)
    assert all(c.measured_ns > c.measured_decode_ns > 0 < c.modelled_ns for c in found.compared)
    assert not found.profile.overlap and found.profile.fixed_ms and found.profile.link_gbps
    lines = report(found)
    assert sum(line.split()[0] in SYSTEMS for line in lines) == 5
    assert any(line.startswith("tree_ms = ") for line in lines)
    assert found.core_share is not None and 0 < found.core_share <= 1


def test_a_busy_machine_is_the_first_and_the_last_line(found: Probed, tmp_path: Path) -> None:
    shared = replace(found, load_per_core=0.4, core_share=0.62)
    lines = report(shared)
    assert lines[0] == lines[-1]
    assert "busy, the probe had a core for 62 % of its time: these numbers are too slow" in lines[0]
    idle = replace(found, load_per_core=0.4, core_share=0.99)
    assert report(idle) == lines[1:-1]
    for name, probed, warnings in (("busy", shared, 1), ("idle", idle, 0)):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(probed.document()))
        assert len(busy_lines(path)) == warnings, "for what is planned by the file"


def test_the_file_is_the_profile_and_its_check(found: Probed, tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    path = tmp_path / FOLDER / "probe.json"
    path.write_text(json.dumps(found.document()))
    gpu = GpuConfig(name="local", clock="modelled", profile=str(path))
    apply_profile(gpu)
    assert profile_of(gpu).digest() == found.profile.digest()
    said = clock_sentence(tmp_path, profile_of(gpu).digest())
    assert said.startswith(f"modelled clock checked on {found.profile.gpu_names[0]}: ar ")
    assert probed_profile(tmp_path, found.profile.gpu_names[0]) == found.profile


def test_trials_go_on_with_their_own_residency(config: RunConfig) -> None:
    """Beside another trial and alone: same hits, nothing of the warm-up, the same again on the way
    back."""
    spec = settled(config, "ar_cache", 4)
    other = settled(config, "eagle3_cache", 6)
    together, alone = Bench({"a": Trial(spec), "b": Trial(other)}), Bench({"a": Trial(spec)})
    for index in range(2):
        together.there(index)
        alone.there(index)
        together.back(index)
    twice, once = (
        [(c.record.hit_experts, c.record.transferred_experts) for c in bench.seen["a"]]
        for bench in (together, alone)
    )
    second = next(i for i, c in enumerate(alone.seen["a"]) if i and c.record.cycle == 0)
    first, later = once[:second], once[second:]
    assert twice == [*first, *first, *later, *later]
    assert first[0][0] == 0, "an empty cache at first"
    assert later[0][0] > 0, "what the request before has left"


def test_one_request_is_too_few(config: RunConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "requests", property(lambda bench: 1))
    with pytest.raises(SpecfitError, match="two requests"):
        probe_machine(config, 4)


def test_two_links_are_not_probed(runnable: Runnable, tmp_path: Path) -> None:
    said = ["gpu=local", "device=cpu", "offload.tier=disk", f"offload.pack={tmp_path}"]
    said += ["offload.ram_slots=4", "limit=2", "max_new_tokens=8"]
    with pytest.raises(SpecfitError, match=r"a probe fits one link.*leave offload.ram_slots out"):
        probe_machine(from_hydra(compose([*runnable.overrides, *said])), 4)
