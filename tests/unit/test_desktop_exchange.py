from pathlib import Path

import numpy as np
import pytest

from edgekit.desktop import exchange
from edgekit.desktop.exchange import StoredFeed, StoredResult
from edgekit.records.cases import FeedBack
from edgekit.records.tensors import Value, same_bits, value_of

VALUES = (
    value_of("a/../<b> 'é", np.array([np.nan, -0.0], np.float16)),
    value_of("text", np.array(["é\n"])),
    value_of("none", np.zeros((0, 2), np.int64)),
    Value("list", "seq(tensor(float))", None, "why"),
)


def test_feeds_and_results_survive_the_way(tmp_path: Path) -> None:
    exchange.save_feed(tmp_path, 3, StoredFeed(VALUES, FeedBack(4, {"s": "t"}), 1))
    exchange.save_result(tmp_path, 3, StoredResult(VALUES, None, (1.5, 2.5)))

    feed, result = exchange.load_feed(tmp_path, 3), exchange.load_result(tmp_path, 3)

    assert (feed.feed_back, feed.runs) == (FeedBack(4, {"s": "t"}), 4)
    assert (result.error, result.run_ms) == (None, (1.5, 2.5))
    for values in (feed.inputs, result.outputs):
        assert all(same_bits(a, b) for a, b in zip(values, VALUES, strict=True))
        assert values[3].note == "why"


def test_only_whole_results_count_as_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange.save_result(tmp_path, 0, StoredResult((), "refused", ()))

    def die(path: Path, document: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(exchange, "write_json", die)
    with pytest.raises(KeyboardInterrupt):
        exchange.save_result(tmp_path, 1, StoredResult(VALUES, None, ()))

    assert exchange.finished(tmp_path) == {0}
    assert exchange.finished(tmp_path / "elsewhere") == set()
