"""What is tried, what is chosen, and what is said about it."""

from __future__ import annotations

import numpy as np
import pytest

from specfit.base.config import from_hydra
from specfit.report.explained import sentence
from specfit.report.metrics import COUNTERS
from specfit.workflows import advise
from specfit.workflows.advice import Advice, Setting, Sources, Tried, advise_on, explained, settings
from specfit.workflows.hydra_cli import compose
from specfit.workflows.simulate import Simulation

SOURCES = Sources("learned", "token_table")


def slots_of(setting: Setting) -> int:
    (said,) = [item for item in setting.overrides if item.startswith("cache_slots=")]
    return int(said.partition("=")[2])


def test_rows_of_one_system_say_what_differs() -> None:
    found = [Tried(one, rehearsal(*PLAIN)) for one in settings(12, SOURCES)]
    lines = [(one.setting.name, advise.moves(one)) for one in found]
    assert len(set(lines)) == len(lines) and all(how for _, how in lines)
    assert ("AR + cache", "lru, on demand") in lines
    assert ("AR + cache", "decayed_lfu, early by layer, routes token_table") in lines


def test_every_setting_is_a_command_and_needs_the_same_memory() -> None:
    found = settings(12, SOURCES)
    assert len({one.overrides for one in found}) == len(found) == 17
    for one in found:
        config = from_hydra(compose(list(one.overrides)))
        assert slots_of(one) == 12 - (config.prefetch != "off"), "an area is a slot of every layer"
        if config.selector.name == "ar_cache":
            assert config.prefetch == "off" or config.routes.name == "token_table"
        assert config.calibration.at == "own" or config.selector.name.endswith("_cache")
        assert one.can_run == (config.routes.name != "atlas" or config.selector.name != "specfit")


def test_without_room_nothing_is_kept_and_nothing_comes_early() -> None:
    found = settings(0, SOURCES)
    assert all(slots_of(one) == 0 for one in found)
    assert not [o for one in found for o in one.overrides if o.startswith(("prefetch", "policy"))]


def test_where_copies_and_computing_take_turns_nothing_comes_early() -> None:
    found = settings(12, SOURCES, overlap=False)
    assert len(found) == 9 and all(slots_of(one) == 12 for one in found)
    assert not [o for one in found for o in one.overrides if o.startswith("prefetch")]


def rehearsal(ms: list[int], tokens: list[int], **changes: list[int]) -> Simulation:
    """One cycle a millisecond, all of it verifying and half of that waiting."""
    ns = np.array(ms) * 10**6
    sums = {name: np.zeros(len(ms), np.int64) for name in COUNTERS}
    sums |= {"committed_tokens": np.array(tokens), "cycles": np.array(ms)}
    sums |= {"cycle_ns": ns, "verify_ns": ns, "transfer_wait_ns": ns // 2}
    sums |= {"demand_experts": np.array(ms) * 8, "transferred_experts": np.array(ms)}
    sums |= {name: np.array(values) for name, values in changes.items()}
    return Simulation(tuple(map(str, range(len(ms)))), sums)


def tried(**speeds: tuple[list[int], list[int]]) -> list[Tried]:
    names = {"plain": "AR + cache", "drafting": "SpecFit", "bound": "exact"}
    selectors = {"plain": "ar_cache", "drafting": "specfit", "bound": "specfit"}
    return [
        Tried(
            Setting(names[key], (f"selector={selectors[key]}", "cache_slots=4"), key != "bound"),
            rehearsal(*value),
        )
        for key, value in speeds.items()
    ]


FASTER, EVEN, SLOWER = ([50, 60], [100, 90]), ([100, 100], [100, 101]), ([130, 150], [100, 90])
PLAIN = ([100, 100], [100, 90])


def advice(**speeds: tuple[list[int], list[int]]) -> Advice:
    return advise_on(tried(**speeds))


def test_the_fastest_that_can_run_is_advised() -> None:
    found = advice(plain=PLAIN, drafting=FASTER, bound=([10, 10], [100, 90]))
    assert found.best.setting.name == "SpecFit", "the bound is faster and cannot run"
    assert found.gain.value == pytest.approx(200 / 110)
    assert advise.warnings(found) == []
    assert "SpecFit is 1.82 times as fast as AR + cache" in sentence(
        explained(found.best, found.plain)
    )


def test_where_no_speculation_is_faster_it_says_so() -> None:
    found = advice(plain=PLAIN, drafting=SLOWER)
    assert found.best is found.plain
    (warning,) = advise.warnings(found)
    assert "no speculation is faster here" in warning and "0.71 times" in warning


def test_a_gain_that_is_none_is_called_so() -> None:
    found = advice(plain=([100, 100], [100, 100]), drafting=EVEN)
    assert found.best is found.drafting
    assert "hardly pays" in advise.warnings(found)[0]


def test_of_equals_the_simplest() -> None:
    same = Tried(Setting("later", ("selector=ar_cache",)), rehearsal(*PLAIN))
    found = advise_on([*tried(plain=PLAIN, drafting=SLOWER), same])
    assert found.best.setting.name == "AR + cache"


@pytest.mark.parametrize(
    ("override", "kept"),
    [
        ("dataset=gsm8k", True),
        ("dataset.path=x", True),
        ("gpu.link_gbps=12", True),
        ("calibration.dataset_path=x", True),
        ("calibration.at=own", False),
        ("selector.k=3", False),
        ("routes.level_ms=1", False),
        ("limit=3", False),
    ],
)
def test_the_command_keeps_what_was_said_and_not_decided(override: str, kept: bool) -> None:
    assert (advise.key_group(override) not in advise.OURS) == kept


@pytest.mark.slow
def test_one_screen_ends_with_a_command_that_runs(runnable, tmp_path, monkeypatch, capsys, command):  # type: ignore[no-untyped-def]
    from tests.fakes.tiny_model import in_process

    said = [*runnable.overrides, f"results_dir={tmp_path}", "calibration.slots=4"]
    asked = [*said, "limit=2", "max_new_tokens=12", "cache_slots=4"]
    ended = in_process("advise", monkeypatch, capsys)(*asked)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert "modelled by profile" in ended.out and "n = 2 requests" in ended.out
    assert any(line.startswith("why: ") for line in lines)
    (line,) = [line for line in lines if line.startswith("  python -m specfit.run ")]
    words = line.split()[3:]
    assert not {"limit=2", "max_new_tokens=12"} & set(words)
    assert command(*words, "limit=1", "max_new_tokens=4").code == 0
    again = in_process("advise", monkeypatch, capsys)(*asked)
    start = next(i for i, line in enumerate(lines) if "room for" in line)
    assert again.out.splitlines()[-len(lines[start:]) :] == lines[start:], "the same advice"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("selector=ar", "selector=ar: advise tries every setting"),
        ("routes.level_ms=1", "decides that; leave it out"),
        ("calibration.at=own", "decides that; leave it out"),
        ("limit=0", "limit is 0"),
        ("gpu=nope", "gpu=nope is unknown"),
    ],
)
def test_what_is_wrong_gets_a_sentence(wrong, sentence, tmp_path, monkeypatch, capsys):  # type: ignore[no-untyped-def]
    from tests.fakes.tiny_model import in_process

    ended = in_process("advise", monkeypatch, capsys)(f"results_dir={tmp_path}", wrong)
    assert ended.code == 2 and sentence in ended.sentence
    assert not list(tmp_path.iterdir())


def test_too_many_slots_are_refused(runnable, tmp_path, monkeypatch, capsys):  # type: ignore[no-untyped-def]
    from tests.fakes.tiny_model import EXPERTS, in_process

    said = [*runnable.overrides, f"results_dir={tmp_path}", f"cache_slots={EXPERTS + 1}"]
    ended = in_process("advise", monkeypatch, capsys)(*said)
    assert ended.code == 2 and "a layer has" in ended.err
    assert not list(tmp_path.iterdir())
