"""The environment of a supervised program: allow-listed, never inherited.

Owns which variables pass. It does not write any of them down; evidence holds names only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

MARK_VARIABLE = "AGENT_EVAL_MARK"
"""Set for every supervised process to a value that is unique to the run, so that what is left over can be found."""

_PASSED_EXACTLY = ("LANG", "TZ")
_PASSED_PREFIX = "LC_"
_XDG_FOLDERS = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_CACHE_HOME": ".cache",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}


def build_environment(
    *,
    home: str,
    tmpdir: str,
    pass_names: Iterable[str] = (),
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """A fresh environment: PATH, LANG, LC_*, TZ of the harness, its own HOME, TMPDIR and XDG folders.

    ``pass_names`` are copied from the harness's environment, also over the fresh values, because naming
    a variable is a decision; names that are not set there stay unset. ``extra`` wins over everything.
    """
    own = os.environ
    result = {"PATH": own.get("PATH", os.defpath), "HOME": home, "TMPDIR": tmpdir}
    for name in own:
        if name in _PASSED_EXACTLY or name.startswith(_PASSED_PREFIX):
            result[name] = own[name]
    for name, folder in _XDG_FOLDERS.items():
        result[name] = f"{home}/{folder}"
    for name in pass_names:
        if name in own:
            result[name] = own[name]
    if extra:
        result.update(extra)
    return result
