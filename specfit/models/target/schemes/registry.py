"""`quantization_config` of a checkpoint -> its scheme."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from specfit.base.types import SpecfitError
from specfit.models.target.family import family_of
from specfit.models.target.schemes.awq import Awq
from specfit.models.target.schemes.compressed import Compressed
from specfit.models.target.schemes.fp8 import Fp8
from specfit.models.target.schemes.fused import GATE_UP, Fused
from specfit.models.target.schemes.gptq import Gptq
from specfit.models.target.schemes.mxfp4 import Mxfp4
from specfit.models.target.schemes.scheme import Scheme

SCHEMES: dict[str, Callable[[Mapping[str, Any], str], Scheme]] = {
    scheme.method: scheme for scheme in (Fp8, Compressed, Gptq, Awq, Mxfp4)
}


def scheme_of(fields: Mapping[str, Any], where: str, names: Iterable[str] = ()) -> Scheme:
    """`fields` of a config.json, `names` of the checkpoint's tensors.

    Raises SpecfitError for a scheme that is unknown or asks for what is not done.
    """
    config = fields.get("quantization_config")
    only = family_of(fields).scheme
    method = config.get("quant_method") if isinstance(config, Mapping) else config
    if only is not None and method != only:
        raise SpecfitError(
            f"{where} is a {fields['model_type']} checkpoint "
            f"{'in floating point' if config is None else f'quantised with {method}'}; specfit "
            f"reads this family in {only} alone"
        )
    if config is None:
        fused = any(name.endswith(f".experts.{GATE_UP}") for name in names)
        return Fused(where) if fused else Scheme(where)
    if not isinstance(config, Mapping) or method not in SCHEMES:
        raise SpecfitError(
            f"{where} is quantised with {method or 'an unnamed method'}, which this engine does "
            f"not run; it runs {', '.join(SCHEMES)} and checkpoints in bfloat16"
        )
    return SCHEMES[method](config, where)
