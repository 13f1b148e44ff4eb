import threading
from pathlib import Path

import pytest
import tiny_bundle

from edgekit.bundle.open import Bundle
from edgekit.errors import UsageError
from edgekit.records import store
from edgekit.records.run_record import RunRecord
from edgekit.serve.inbox import Arrival, Inbox, InboxFullError, InboxLimits


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return tiny_bundle.make(tmp_path / "bundle")


def test_records_posted_at_the_same_time_are_all_kept(bundle: Bundle, tmp_path: Path) -> None:
    arrivals: list[Arrival] = []
    inbox = Inbox(tmp_path / "in", listener=arrivals.append)
    start = threading.Barrier(8)
    kept: list[str] = []

    def one(number: int) -> None:
        start.wait()
        kept.append(inbox.receive(100, lambda: tiny_bundle.record(bundle, run=f"r{number}")))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    runs = {store.load_run(tmp_path / "in" / name).record.run for name in kept}  # type: ignore[union-attr]
    assert runs == {f"r{number}" for number in range(8)}
    assert len(arrivals) == 8
    assert not [path for path in (tmp_path / "in").iterdir() if path.name not in kept]


def test_posts_at_the_same_time_cannot_pass_a_bound_together(bundle: Bundle, tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "in", InboxLimits(total_bytes=1500))

    def read_while_another_comes() -> RunRecord:
        with pytest.raises(InboxFullError) as full:
            inbox.receive(1000, lambda: tiny_bundle.record(bundle))
        assert full.value.bound == "bytes"
        return tiny_bundle.record(bundle)

    inbox.receive(1000, read_while_another_comes)


def test_a_post_that_fails_leaves_its_room_and_nothing_else(bundle: Bundle, tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "in", InboxLimits(records=1, total_bytes=5000))

    def malformed() -> RunRecord:
        raise UsageError("not a record")

    for _ in range(3):
        with pytest.raises(UsageError, match="not a record"):
            inbox.receive(5000, malformed)
    assert not (tmp_path / "in").exists()
    inbox.receive(5000, lambda: tiny_bundle.record(bundle))


def test_records_of_an_earlier_server_count(bundle: Bundle, tmp_path: Path) -> None:
    Inbox(tmp_path / "in").receive(0, lambda: tiny_bundle.record(bundle))
    with pytest.raises(InboxFullError, match="1 records"):
        Inbox(tmp_path / "in", InboxLimits(records=1)).receive(0, lambda: tiny_bundle.record(bundle))
    with pytest.raises(InboxFullError, match="bytes"):
        Inbox(tmp_path / "in", InboxLimits(total_bytes=1)).receive(0, lambda: tiny_bundle.record(bundle))
    Inbox(tmp_path / "in", InboxLimits(records=2)).receive(0, lambda: tiny_bundle.record(bundle))


def test_the_listener_hears_of_a_refusal(tmp_path: Path) -> None:
    arrivals: list[Arrival] = []
    Inbox(tmp_path / "in", listener=arrivals.append).refuse("why")
    assert [(arrival.record, arrival.problem) for arrival in arrivals] == [(None, "why")]
