"""Values as JSON has them: infinities, which JSON lacks, as words."""

from __future__ import annotations

import math
from typing import Any


def jsonable(value: Any) -> Any:
    """Return a value with its infinities replaced by ``"infinity"`` and ``"-infinity"``, NaN by None."""
    if isinstance(value, dict):
        return {name: jsonable(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "infinity" if value > 0.0 else "-infinity"
    return value
