"""Hold the desktop itself to the standard, node by node: where every engine agrees, all may be wrong."""

import time

from edgekit.conformance.suite import Reply
from edgekit.diagnose.confirm import Confirmed, Cut, cut_out, finding_of
from edgekit.diagnose.lab import case_of
from edgekit.diagnose.scene import MOST_BYTES, Scene

_SECONDS = 90.0
_BATCH = 64
_MOST_FOUND = 8
_RANDOM = ("Random", "Bernoulli", "Multinomial")


def against_standard(scene: Scene, *, seconds: float = _SECONDS) -> tuple[Confirmed, ...]:
    """Return the nodes whose values on the desktop are not those of the float64 evaluation of the same inputs.

    The desktop's own values go in, so an error of one node is not another's. A model whose values take more than 256
    MiB, and what is not done after ``seconds``, is left out.
    """
    names = scene.values()
    scene.weigh(names)
    if sum(scene.sizes[name] for name in names) > MOST_BYTES:
        return ()
    scene.fetch(names)
    cuts = [
        cut
        for node in scene.nodes
        if not node.op_type.startswith(_RANDOM) and (cut := cut_out(scene, node)) is not None
    ]
    end = time.monotonic() + seconds
    bad: list[tuple[Cut, Reply]] = []
    for start in range(0, len(cuts), _BATCH):
        if time.monotonic() > end or len(bad) >= _MOST_FOUND:
            break
        batch = cuts[start : start + _BATCH]
        scene.lab.progress("Evaluating in float64", start / len(cuts))
        replies = scene.lab.exact([case_of(cut.model, cut.inputs) for cut in batch])
        bad += [(cut, exact) for cut, exact in zip(batch, replies, strict=True) if cut.is_off(scene, exact)]
    bad = bad[:_MOST_FOUND]
    browser = scene.lab.browser([case_of(cut.model, cut.inputs, scene.settings) for cut, _ in bad])
    return tuple(finding_of(scene, cut, reply, exact) for (cut, exact), reply in zip(bad, browser, strict=True))
