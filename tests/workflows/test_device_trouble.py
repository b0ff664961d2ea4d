"""A GPU that cannot be had is one sentence and exit code 2; a bug in the code stays a traceback."""

from __future__ import annotations

import pytest

from specfit.workflows.hydra_cli import guarded


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("CUDA error: CUDA-capable device(s) is/are busy or unavailable", "the GPU is busy"),
        ("Found no NVIDIA driver on your system", "no usable GPU or driver"),
        ("CUDA driver version is insufficient for CUDA runtime version", "older than this PyTorch"),
    ],
)
def test_trouble_with_the_gpu_is_one_sentence(
    said: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def job(_: object) -> int:
        raise RuntimeError(said + "\nCompile with TORCH_USE_CUDA_DSA")

    assert guarded(job, None) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1


def test_another_error_is_not_swallowed() -> None:
    def job(_: object) -> int:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    with pytest.raises(RuntimeError, match="illegal memory access"):
        guarded(job, None)
