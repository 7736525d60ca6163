"""Times as they are written down: RFC 3339 UTC text.

Durations are never computed from these; they come from monotonic clocks.
"""

from __future__ import annotations

import time
from functools import lru_cache


def rfc3339(seconds: float) -> str:
    """``seconds`` since the epoch as RFC 3339 UTC text with milliseconds."""
    whole = int(seconds // 1)
    return f"{_second(whole)}.{int((seconds - whole) * 1000):03d}Z"


@lru_cache(maxsize=4)
def _second(whole: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))


def now_at() -> str:
    """The present time as RFC 3339 UTC text, for fields that end in ``_at``."""
    return rfc3339(time.time())
