"""Whole runs through the real entry point: found, repeated, interrupted, resumed, shown."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import specfit.workflows.execute
from specfit.storage.rows import load_run
from tests.fakes.tiny_model import Command, JobResult, Runnable

ROOT = Path(__file__).resolve().parents[2]
ROWS = ("cycles.parquet", "requests.parquet")
SMALL = ("limit=3", "max_new_tokens=6", "cache_slots=4")

Run = Callable[..., tuple[JobResult, Path]]


def folders(results: Path) -> list[Path]:
    runs = results / "runs"
    return [f for f in sorted(runs.iterdir()) if f.is_dir()] if runs.is_dir() else []


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in ROWS}


@pytest.fixture
def run(command: Command, runnable: Runnable, tmp_path: Path) -> Run:
    """Run below tmp_path/<results>; returns how it ended and its one run folder."""

    def go(*overrides: str, results: str = "results") -> tuple[JobResult, Path]:
        where = tmp_path / results
        ended = command(*runnable.overrides, f"results_dir={where}", *SMALL, *overrides)
        assert ended.code == 0, ended.err
        (folder,) = folders(where)
        return ended, folder

    return go


def test_a_quantised_copy_is_run_and_its_rows_have_stored_bytes(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An expert of 32 x 16 in FP8: three times 512 numbers and one scale, each from a multiple of
    16 on, 1,570 bytes together, padded to 48."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    same = ("model.format=fp8", "gpu.billed=self")
    ended = [
        run("selector=ar_cache", *same, results="a")[1],
        run("selector=eagle3_cache", "offload.tier=disk", *same, results="b")[1],
    ]
    assert len(list((tmp_path / "cache" / "specfit" / "checkpoints").iterdir())) == 1
    requests = [pd.read_parquet(folder / "requests.parquet") for folder in ended]
    assert [ids.tolist() for ids in requests[0].output_ids] == [
        ids.tolist() for ids in requests[1].output_ids
    ]
    assert set(requests[0].expert_format) == {"fp8-128x128"}
    for folder in ended:
        cycles = pd.read_parquet(folder / "cycles.parquet")
        assert (cycles.transferred_bytes == 1584 * cycles.transferred_experts).all()
        assert (cycles.billed_bytes == cycles.transferred_bytes).all()
        assert cycles.transferred_experts.sum() > 0


# -- the same run ----------------------------------------------------------------------------------


def test_the_same_modelled_run_twice_is_byte_equal(run: Run, calibration: Path) -> None:
    chosen = ("selector=specfit", "calibration.slots=4", f"calibration.path={calibration}")
    _, first = run(*chosen, results="a")
    _, second = run(*chosen, results="b")
    assert first.name == second.name
    assert bytes_of(first) == bytes_of(second)
    rows = load_run(first)
    check_timer(rows)
    assert (rows.cycles["route_ns"] == 0).all(), "an atlas is off the clock"
    assert (rows.cycles["select_ns"][rows.cycles["cycle"] > 0] == 3_000_000).all()


def check_timer(rows: Any) -> None:
    """What is timed and what is not, from rows alone."""
    cycles = rows.cycles
    phases = ["draft_ns", "route_ns", "select_ns", "verify_ns", "commit_ns"]
    assert (cycles[phases].sum(axis=1) == cycles["cycle_ns"]).all()
    assert (cycles["transfer_wait_ns"] <= cycles["verify_ns"]).all()
    by_request = cycles.groupby("request_id", sort=False)["cycle_ns"]
    requests = rows.requests.set_index("request_id")
    assert (by_request.first() == requests["prefill_ns"]).all()
    decode = cycles[cycles["cycle"] > 0].groupby("request_id", sort=False)["cycle_ns"].sum()
    assert (decode == requests["decode_ns"]).all()


def test_a_finished_run_is_found_and_force_repeats_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, folder = run("selector=ar")
    before, stamp = bytes_of(folder), (folder / "cycles.parquet").stat().st_mtime_ns
    forced, _ = run("selector=ar", "force=true")
    assert bytes_of(folder) == before
    assert (folder / "cycles.parquet").stat().st_mtime_ns > stamp
    monkeypatch.setattr(specfit.workflows.execute, "Job", None)  # nothing is loaded to find a run
    found, _ = run("selector=ar")
    assert "found finished (force=true runs it again)" in found.out
    assert "found finished" not in first.out + forced.out

    def table(ended: JobResult) -> list[str]:
        lines = ended.out.splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("decode speed"))
        return [line for line in lines[start:] if not line.startswith(("decoding took", "elapsed"))]

    assert table(found) == table(forced) == table(first)
    assert bytes_of(folder) == before


def test_an_interrupted_run_goes_on_after_its_last_finished_request(
    run: Run, command: Command, runnable: Runnable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, whole = run("selector=ar_cache", results="whole")
    serve = specfit.workflows.execute.Job._serve
    served: list[Any] = []

    def dies_in_the_second(self: Any, *arguments: Any) -> Any:
        served.append(arguments)
        if len(served) == 2:
            raise KeyboardInterrupt
        return serve(self, *arguments)

    results = f"results_dir={tmp_path / 'results'}"
    with monkeypatch.context() as patched:
        patched.setattr(specfit.workflows.execute.Job, "_serve", dies_in_the_second)
        ended = command(*runnable.overrides, results, *SMALL, "selector=ar_cache")
    assert ended.code == 130
    assert ended.sentence == "interrupted; the same command goes on after the last request"
    (folder,) = folders(tmp_path / "results")
    assert not (folder / "cycles.parquet").exists(), "rows are there whole or not at all"
    again, _ = run("selector=ar_cache")
    assert "1 of 3 requests were finished before; going on after them" in again.out
    assert bytes_of(folder) == bytes_of(whole)
    argvs = json.loads((folder / "manifest.json").read_text())["provenance"]
    assert len(argvs) == 2, "two processes worked on it"


@pytest.mark.slow
def test_a_killed_process_loses_no_finished_request(
    run: Run, runnable: Runnable, tmp_path: Path
) -> None:
    chosen = ("selector=ar_cache", "limit=8", "max_new_tokens=40")
    _, whole = run(*chosen, results="whole")
    results = tmp_path / "results"
    arguments = [*runnable.overrides, *SMALL, *chosen, f"results_dir={results}"]
    process = subprocess.Popen([sys.executable, "-m", "specfit.run", *arguments], cwd=ROOT)
    until = time.monotonic() + 300
    while time.monotonic() < until and process.poll() is None:
        if len(list(results.glob("runs/*/parts/0*"))) >= 2:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.005)
    assert process.wait() == -signal.SIGKILL, "killed while it ran"
    ended, folder = run(*chosen)
    assert re.search(r"^[1-7] of 8 requests were finished before", ended.out, re.MULTILINE)
    assert bytes_of(folder) == bytes_of(whole)


@pytest.mark.parametrize("policy", ["lru", "decayed_lfu"])
def test_a_higher_limit_goes_on_after_the_lower_ones_requests(
    command: Command, runnable: Runnable, tmp_path: Path, policy: str
) -> None:
    """And leaves the rows of a run that began at the first request."""

    def run(results: str, limit: int) -> tuple[JobResult, Path]:
        said = (
            *SMALL[1:],
            f"limit={limit}",
            "selector=ar_cache",
            f"policy={policy}",
            "compare=false",
        )
        ended = command(*runnable.overrides, *said, f"results_dir={tmp_path / results}")
        assert ended.code == 0, ended.err
        return ended, Path(ended.out.splitlines()[-1].removeprefix("rows: "))

    run("grown", 1)
    grown, folder = run("grown", 3)
    whole, alone = run("alone", 3)
    assert "1 of 3 requests were finished before; going on after them" in grown.out
    assert "finished before" not in whole.out
    assert folder.name == alone.name and bytes_of(folder) == bytes_of(alone)
    assert len(json.loads((folder / "manifest.json").read_text())["provenance"]) == 2


# -- what is printed -------------------------------------------------------------------------------


def test_the_first_lines_say_whose_times_they_are(run: Run) -> None:
    ended, _ = run("selector=ar", "gpu.link_gbps=30")
    first, *known, device = ended.out.splitlines()[:4]
    assert first == "times: modelled for qwen3-30b-a3b by profile paper_main"
    assert known[0].startswith("  set: link; inferred: fixed; assumed: node, draft level, sel")
    assert device.startswith("device cpu (") and device.endswith("is in no modelled time")
    assert all(len(line) <= 78 for line in (first, *known))


def test_output_that_no_terminal_reads_is_short_and_says_what_its_times_are(run: Run) -> None:
    ended, _ = run("selector=eagle3_cache")
    lines = ended.out.splitlines()
    assert len(lines) < 30 and "\r" not in ended.out and "\x1b" not in ended.out
    for line in lines:
        if re.search(r"\d (tokens/s|tok/s|ms|s)\b", line):
            assert "modelled" in line or line.startswith(("decoding took", "elapsed")), line
    names = [line.split("  ")[0] for line in lines]
    assert names.index("decoding took") == names.index("timed") + 1


def test_a_speed_up_is_shown_once_ar_has_run(
    command: Command, runnable: Runnable, tmp_path: Path
) -> None:
    settings = (*runnable.overrides, f"results_dir={tmp_path}", *SMALL)
    alone = command(*settings, "selector=eagle3_cache").out
    assert "speed-up and equal ids are shown once selector=ar has run on the same" in alone
    command(*settings, "selector=ar")
    beside = command(*settings, "selector=eagle3_cache").out
    assert re.search(r"^EAGLE-3 \+ cache .* 3/3  <-$", beside, re.MULTILINE)
    apart = command(*settings, "selector=eagle3_cache", "compare=false").out
    assert re.search(r"^ids equal to ar +yes, 3 requests$", apart, re.MULTILINE)
    assert re.search(r"^speed-up over ar +[\d.]+ x \(modelled", apart, re.MULTILINE)


def test_a_wall_run_says_measured(run: Run) -> None:
    ended, folder = run("selector=ar_cache", "gpu=local")
    assert ended.out.startswith("times: measured by the wall clock on this device cpu (")
    assert "modelled" not in ended.out and "tokens/s (measured)" in ended.out
    check_timer(load_run(folder))


# -- one's own prompts -----------------------------------------------------------------------------


def test_prompts_and_messages_with_windows_line_ends(run: Run, tmp_path: Path) -> None:
    hello = [{"role": "user", "content": "Say hello.\u2028Twice."}]
    lines = [{"prompt": "Say hello.\u2028Twice."}, {"messages": hello, "id": "mine"}]
    text = "\r\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\r\n\r\n"
    path = tmp_path / "my.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    ended, folder = run("selector=ar", "dataset=prompts", f"dataset.path={path}")
    requests = load_run(folder).requests
    assert list(requests["request_id"]) == ["row-0", "mine"]
    assert list(requests["status"]) == ["ok", "ok"]
    assert requests["prompt_tokens"][0] == requests["prompt_tokens"][1]
    assert list(requests["output_ids"][0]) == list(requests["output_ids"][1])
    assert requests["score"].isna().all() and "mean score" not in ended.out


# -- the package -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_wheel_runs_without_the_clone(runnable: Runnable, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    for name in ("specfit", "conf"):
        (source / name).symlink_to(ROOT / name)
    built = tmp_path / "built"
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "-q", "-w", str(built), str(source)], check=True)
    (wheel,) = built.glob("*.whl")
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(wheel), str(built)], check=True)

    def below(folder: Path, name: str) -> set[str]:
        return {str(p.relative_to(folder)) for p in (folder / name).rglob("*") if p.is_file()}

    packaged, ours = built / "specfit", ROOT / "specfit"
    assert below(packaged, "conf") >= {p for p in below(ROOT, "conf") if p.endswith(".yaml")}
    assert below(packaged, "weights") == below(ours, "weights")
    arguments = [*runnable.overrides, "selector=ar", "limit=1", "max_new_tokens=2"]
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "specfit.run", *arguments, f"results_dir={tmp_path}/rows"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(built)},
    )
    assert ended.returncode == 0, ended.stderr
    assert "tokens/s (modelled)" in ended.stdout
