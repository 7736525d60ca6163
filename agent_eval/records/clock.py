"""Times as they are written down: RFC 3339 UTC text.

Durations are never computed from these; they come from monotonic clocks.
"""

from __future__ import annotations

import time


def rfc3339(seconds: float) -> str:
    """``seconds`` since the epoch as RFC 3339 UTC text with milliseconds."""
    whole = int(seconds // 1)
    parts = time.gmtime(whole)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', parts)}.{int((seconds - whole) * 1000):03d}Z"


def now_at() -> str:
    """The present time as RFC 3339 UTC text, for fields that end in ``_at``."""
    return rfc3339(time.time())
