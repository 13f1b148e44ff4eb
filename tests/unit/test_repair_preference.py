"""Which of the cures that pass is kept: by time on a GPU, by placement where an adapter is software."""

from edgekit.records.settings import SessionSettings
from edgekit.repair.candidates import Family
from edgekit.repair.preference import ordered
from edgekit.repair.result import Proof, Tried


def cure(name: str, family: Family, ms: float, elsewhere: int | None, cpu_nodes: tuple[str, ...] = ()) -> Tried:
    proof = Proof("chromium", "jspi", "passed", 0.1, ms, software=True, elsewhere=elsewhere)
    sessions = {"jspi": SessionSettings(cpu_nodes=cpu_nodes)}
    return Tried(name, family, True, None, sessions, proofs=(proof,), times_ms=(("chromium", (ms,)),))


CURES = [
    cure("wasm alone", "variants", 1.0, None),
    cure("on the CPU", "cpu-nodes", 2.0, 4),
    cure("padded", "rewrite", 3.0, 2),
    cure("optimization off", "optimization", 4.0, 3),
    cure("NCHW", "layout", 9.0, 2),
]


def names(cures: list[Tried]) -> list[str]:
    return [one.name for one in cures]


def test_on_a_gpu_the_fastest_is_first() -> None:
    assert names(ordered(CURES, software=False)) == names(CURES)


def test_on_a_software_adapter_most_nodes_on_the_gpu_then_a_setting_and_another_provider_last() -> None:
    assert names(ordered(CURES, software=True)) == ["NCHW", "padded", "optimization off", "on the CPU", "wasm alone"]


def test_without_a_placement_the_nodes_that_were_to_go_to_the_cpu_count() -> None:
    unknown = [cure("two", "known", 1.0, None, ("a", "b")), cure("one", "cpu-nodes", 2.0, None, ("a",))]
    assert names(ordered(unknown, software=True)) == ["one", "two"]
