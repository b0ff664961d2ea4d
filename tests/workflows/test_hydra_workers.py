"""Bad jobs of other processes are heard once, with their sentence; a lost worker is a sentence."""

from __future__ import annotations

import pickle
import sys

import pytest

from specfit.base.types import SpecfitError
from specfit.workflows import hydra_workers
from specfit.workflows.hydra_cli import attempt, hydra_command
from specfit.workflows.hydra_workers import JobResult, lost_worker, refuse_absent
from tests.fakes.tiny_model import Command, Runnable


@pytest.fixture(autouse=True)
def _nothing_heard() -> None:
    hydra_workers.exit_codes.clear()


def test_an_end_is_heard_once_however_often_it_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    sent = pickle.dumps(JobResult(2, "too many slots"))
    assert capsys.readouterr().err == "", "not before it has come home"
    for _ in range(2):
        come = pickle.loads(sent)
    assert (come.code, come.sentence) == (2, "too many slots")
    assert list(hydra_workers.exit_codes.values()) == [2]
    assert capsys.readouterr().err == "specfit: too many slots\n"


def test_what_was_said_in_the_worker_is_not_said_again(capsys: pytest.CaptureFixture[str]) -> None:
    pickle.loads(pickle.dumps(JobResult(3)))
    assert list(hydra_workers.exit_codes.values()) == [3] and capsys.readouterr().err == ""


def test_a_job_elsewhere_says_nothing_and_sends_its_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The task that a launcher would carry away, called as if it had arrived."""

    def bad(composed: object) -> int:
        raise SpecfitError("no such\n  head")

    sent: list[bytes] = []

    def away(**_: object):  # type: ignore[no-untyped-def]
        def decorate(task):  # type: ignore[no-untyped-def]
            def call() -> None:
                with monkeypatch.context() as there:
                    there.setattr(hydra_workers, "here", lambda: ("another node", 1))
                    there.setattr(hydra_workers, "prepare_worker", lambda: None)
                    sent.append(pickle.dumps(task(None)))
                assert capsys.readouterr().err == ""
                pickle.loads(sent[0])

            return call

        return decorate

    import hydra

    monkeypatch.setattr(hydra, "main", away)
    monkeypatch.setattr(sys, "argv", ["specfit.run"])
    assert hydra_command(bad) == 2
    assert capsys.readouterr().err == "specfit: no such head\n"


def test_the_worst_code_of_a_sweep_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 before 3 before 0, whichever job came first."""
    import hydra

    def home(codes: list[int]) -> object:
        def call() -> None:
            for code in codes:
                pickle.loads(pickle.dumps(JobResult(code)))

        return lambda **_: lambda task: call

    monkeypatch.setattr(sys, "argv", ["specfit.run"])
    for codes, worst in (([3, 2, 3], 2), ([3], 3), ([], 0)):
        monkeypatch.setattr(hydra, "main", home(codes))
        assert hydra_command(lambda _: 0) == worst


def test_a_sentence_or_a_code() -> None:
    def full(_: object) -> int:
        raise MemoryError("9 bytes")

    assert attempt(lambda _: 3, None) == (3, "")
    code, sentence = attempt(full, None)
    assert code == 2 and sentence.startswith("out of memory (9 bytes; ")


# -- what can be wrong with a launcher -------------------------------------------------------------


def test_a_launcher_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hydra_workers, "is_installed", lambda module: False)
    for name, extra in (("joblib", "joblib"), ("submitit_slurm", "slurm"), ("ray", "ray")):
        with pytest.raises(SpecfitError) as refused:
            refuse_absent(["-m", f"hydra/launcher={name}"])
        assert str(refused.value) == (
            f"hydra/launcher={name} is not installed; pip install 'specfit[{extra}]'"
        )
    refuse_absent(["selector=ar", "hydra/launcher=basic"])


def test_installed_is_asked_without_importing() -> None:
    assert hydra_workers.is_installed("specfit.workflows.hydra_workers")
    assert not hydra_workers.is_installed("no_such_package.part")


def test_only_a_launchers_own_error_is_a_lost_worker() -> None:
    died = type("TerminatedWorkerError", (RuntimeError,), {"__module__": "joblib.externals.loky"})
    sentence = lost_worker(died("a worker was killed\nby something"))
    assert sentence == (
        "a worker of the sweep was lost (TerminatedWorkerError: a worker was killed); the same "
        "command goes on after the last finished requests"
    )
    assert lost_worker(RuntimeError("ours")) is None


def test_a_run_is_not_split_by_request(command: Command, runnable: Runnable) -> None:
    ended = command(*runnable.overrides, "record.shard=0/2")
    assert ended.code == 2
    assert ended.sentence.startswith("record.shard splits a recording, not a run: a run's expert")
