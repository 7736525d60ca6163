"""What looks like a number to Unicode and not to ``int`` is no number, whoever sent it."""

from __future__ import annotations

import pytest

from agent_eval import InvalidInput
from consumers.core_agent.adapter.pointer import ABSENT, lookup
from consumers.core_agent.model_boundary.wire import Head, WireError
from consumers.core_agent.receipts import from_trial
from tests.consumers.core_agent.adapters.test_schema import problems_of, small

ODD = ["\u00b2", "\u0661", "9" * 5000, "+1"]


@pytest.mark.parametrize("text", ODD)
def test_a_content_length(text: str) -> None:
    with pytest.raises(WireError, match="is no number"):
        _ = Head(("POST", "/", "HTTP/1.1"), (("content-length", text),)).length


@pytest.mark.parametrize("text", [*ODD, "--1", "-"])
def test_an_index_of_a_pointer(text: str) -> None:
    assert lookup(f"/a/{text}", {"a": [1, 2]}) is ABSENT
    assert lookup("/a/-1", {"a": [1, 2]}) == 2


@pytest.mark.parametrize("text", ODD)
def test_an_exit_code_of_an_adapter(text: str) -> None:
    document = small()
    document["outcome"]["exit_map"] = {text: "failed"}
    assert "/outcome/exit_map" in str(problems_of(document))


@pytest.mark.parametrize("text", ODD)
def test_a_trial_of_a_receipt(text: str) -> None:
    with pytest.raises(InvalidInput, match="names no trial"):
        from_trial(f"somewhere/edit@1/{text}")
