"""Names in a config: one of ours, or `package.module:attribute`, an object of another package.

Nothing registers itself and nothing is discovered: a config says where an object is, and only that
module is imported. See docs/extend.md.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from specfit.base.types import SpecfitError

T = TypeVar("T")


def named(key: str, name: str, ours: Mapping[str, T], fits: Callable[[Any], bool], what: str) -> T:
    """`ours[name]`, or the object that `name` points at outside.

    `key` is the config's, `what` says what an object must be to pass `fits`. Raises SpecfitError.
    """
    if name in ours:
        return ours[name]
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute.isidentifier()):
        raise SpecfitError(
            f"{key} is {name!r}; use one of {', '.join(ours)}, or package.module:name for one of "
            "your own"
        )
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise SpecfitError(
            f"{key} is {name!r}, and {module_name} cannot be imported ({error}); install its "
            "package, or set PYTHONPATH"
        ) from error
    if not hasattr(module, attribute):
        raise SpecfitError(f"{key} is {name!r}, and {module_name} has no {attribute}")
    result = getattr(module, attribute)
    if not fits(result):
        raise SpecfitError(
            f"{key} is {name!r}, which must be {what} and is a {type(result).__name__}"
        )
    checked: T = result
    return checked
