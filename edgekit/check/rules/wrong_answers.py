"""The rule on what the fuzzer found: nodes that a build of the runtime is known to answer wrongly."""

from collections.abc import Iterator

from edgekit.check.rule import Hit, rule
from edgekit.check.rules import gpu
from edgekit.check.subject import Subject
from edgekit.known import entries, match, survey
from edgekit.known.entries import Cure
from edgekit.runtime import pins


@rule("known-wrong-answer", "warning")
def known_wrong_answer(subject: Subject) -> Iterator[Hit]:
    """A node of a kind that the fuzzer found to be answered wrongly.

    What rules with a page of their own say of a node is not said again.
    """
    pinned = pins.load()
    builds = [(provider, variant) for provider in subject.providers for variant in provider.variants[:1]]
    known = [(*build, entries.load(subject.target.runtime.package, pinned.version, build[1])) for build in builds]
    table = subject.evidence.shapes
    if table is None or not any(knowledge for *_, knowledge in known):
        return
    told = {hit.node for other in (gpu.conv_channels_of_three, gpu.conv_padding_behind) for hit in other.find(subject)}
    nodes = [node for node in survey.nodes(subject.model, table) if node.name not in told]
    for provider, variant, knowledge in known:
        for found in match.of_knowledge(nodes, knowledge) if knowledge else ():
            cures = ", ".join(_words(cure) for cure in found.cures)
            yield Hit(
                f"{provider.runtime} ({variant}) computes nodes like this wrongly, without an error: "
                f"{found.entry.text}. Measured in {found.entry.failures} drawn cases, and in no case without this "
                "pattern.",
                found.node.name,
                fix=f"Measured to give the right answer: {cures}." if cures else None,
            )


def _words(cure: Cure) -> str:
    words = {"layout": f"the session option preferredLayout '{cure.value}'",
             "cpu_nodes": "the node in forceCpuNodeNames",
             "optimization": f"graph optimization '{cure.value}'",
             "variant": f"the {cure.value} build of the runtime"}  # fmt: skip
    return words[cure.kind]
