"""Cases and replies as files."""

import numpy as np
import pytest
from conformance_samples import relu, unknown, values

from edgekit.conformance import suite
from edgekit.errors import UsageError
from edgekit.records import tensors


def test_the_cases_that_are_to_be_done_are_written_with_their_numbers() -> None:
    cases = [relu("a"), unknown("b"), relu("c")]
    entries, data = suite.encode(cases, [0, 2])
    assert [(entry["index"], entry["run"]) for entry in entries] == [(0, True), (2, True)]
    arrays = tensors.decode(data, "the suite")
    assert arrays["2/model"].tobytes() == cases[2].model
    assert tensors.join(entries[1]["inputs"], arrays)[0].array is not None


def test_replies_come_back() -> None:
    listed, arrays = tensors.split("7/output", values({"y": np.arange(3)}))
    document = [
        {"index": 7, "outcome": "done", "error": None, "outputs": listed, "placement": ["CPUExecutionProvider"]},
        {"index": 9, "outcome": "refused", "error": "no kernel", "outputs": []},
    ]
    replies = suite.replies(document, tensors.encode(arrays))
    assert replies[7].outputs[0].shape == (3,)
    assert replies[7].placement == ("CPUExecutionProvider",)
    assert (replies[9].outcome, replies[9].error) == ("refused", "no kernel")


def test_replies_without_their_tensors_are_an_error() -> None:
    listed, _ = tensors.split("7/output", values({"y": np.arange(3)}))
    with pytest.raises(UsageError, match="named but not stored"):
        suite.replies([{"index": 7, "outcome": "done", "error": None, "outputs": listed}], tensors.encode({}))
