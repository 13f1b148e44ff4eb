"""Make failing cases small, and try their neighbours, by their choices: many candidates a page.

A choice that is lower is simpler, so a case shrinks by lowering its choices while it stays wrong. What was tried on the
way, and every case that differs from the smallest in one choice, is evidence of what the cause is.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from edgekit.conformance.cases import Case
from edgekit.fuzz import generators
from edgekit.fuzz.author import Generator
from edgekit.fuzz.generators import Drawn
from edgekit.fuzz.trials import Bench, Status, Trial

T = TypeVar("T")

_MOST_ROUNDS = 12
_A_ROUND = 24
_NEIGHBOURS = 50
_LEAST, _ROUND_SECONDS = 6, 30.0
_OPTIONS = 5

Evidence = Callable[[Sequence[Trial]], None]


def key(drawn: Drawn) -> tuple[str, tuple[tuple[str, int], ...]]:
    """Return what is equal for equal cases."""
    return drawn.generator, tuple(sorted(drawn.choices.items()))


def cost(drawn: Drawn) -> tuple[int, int]:
    """Return how large a case is: bytes of its inputs and model, then its choices."""
    return (size(drawn.case) if drawn.case is not None else 1 << 60, sum(drawn.choices.values()))


def size(case: Case) -> int:
    """Return the bytes of a case: its model and what it is given."""
    return len(case.model) + sum(value.array.nbytes for value in case.inputs if value.array is not None)


def shrink(
    bench: Bench,
    found: Sequence[Trial],
    among: Mapping[str, Generator],
    tell: Evidence,
    more_time: Callable[[], bool],
    *,
    status: Status = "wrong",
    most: int = _A_ROUND,
) -> list[Trial]:
    """Shrink every failing case of ``found`` at once, a page a round; ``tell`` is given all that was tried.

    ``status``: what failing is; a smaller case must be that too. ``most``: how many candidates of a case a round.
    """
    best = list(found)
    steps: list[list[dict[str, int]]] = [[] for _ in best]
    busy, idle, asked = set(range(len(best))), [0] * len(best), [0] * len(best)
    for turn in range(_MOST_ROUNDS):
        if not busy or not more_time():
            break
        room = int(bench.cases_per_second * _ROUND_SECONDS)
        # A slow page takes a few of them a round, each in its turn, so that a round is over when its time is.
        chosen = sorted(busy, key=lambda place: (asked[place], place))[: max(1, room // _LEAST)]
        each = max(_LEAST, min(most, room // len(chosen)))
        tried = {
            place: _redrawn(
                among[best[place].drawn.generator], _candidates(best[place].drawn, steps[place], each, turn)
            )
            for place in sorted(chosen)
        }
        trials = iter(bench.finish(bench.prepare([one for made in tried.values() for one in made])))
        for place, candidates in tried.items():
            answers = [next(trials) for _ in candidates]
            asked[place] += 1
            tell(answers)
            failing = sorted((t for t in answers if t.status == status), key=lambda t: cost(t.drawn))
            steps[place] = [_difference(best[place].drawn, t.drawn) for t in failing]
            if failing and cost(failing[0].drawn) < cost(best[place].drawn):
                best[place], idle[place] = failing[0], 0
            else:
                idle[place] += 1
                if idle[place] > 1 or len(answers) < each:  # all that could be lower was tried
                    busy.discard(place)
    return best


def neighbours(
    bench: Bench, smallest: Sequence[Trial], among: Mapping[str, Generator], tell: Evidence, seconds: float
) -> None:
    """Try cases that differ from each smallest one in one choice: as many as two pages do in ``seconds``.

    First some options of every choice. A choice with an option that made it right has to do with the cause: of those,
    every option comes next, which tells "a multiple of 3" from "6".
    """
    sources = list({key(one.drawn): one.drawn for one in smallest}.values())
    sources = sources[: max(1, int(bench.cases_per_second * seconds / 2 / _LEAST))]
    deciding = [set(source.choices) for source in sources]
    for most in (_OPTIONS, None):
        each = max(_LEAST, min(_NEIGHBOURS, int(bench.cases_per_second * seconds / 2 / max(1, len(sources)))))
        made = [
            _redrawn(
                among[source.generator],
                spread([{**source.choices, name: index} for name, index in _others(source, names, most)], each),
            )
            for source, names in zip(sources, deciding, strict=True)
        ]
        answered = bench.finish(bench.prepare([drawn for each in made for drawn in each]))
        tell(answered)
        answers = iter(answered)
        for place, drawn in enumerate(made):
            right = [trial for trial in [next(answers) for _ in drawn] if trial.status == "right"]
            changed = [_difference(sources[place], trial.drawn) for trial in right]
            deciding[place] = {name for each in changed for name in each} & set(sources[place].choices)


def _candidates(drawn: Drawn, steps: Sequence[Mapping[str, int]], most: int, turn: int) -> list[dict[str, int]]:
    """Return lower choices: the steps that worked last time taken together, then each choice lowered alone.

    Where those are more than ``most``, other ones each ``turn``.
    """
    base = dict(drawn.choices)
    found: list[dict[str, int]] = []
    for count in range(len(steps), 1, -1):
        together = dict(base)
        for step in steps[:count]:
            together |= {name: min(index, together.get(name, 0)) for name, index in step.items()}
        found.append(together)
    names = [name for name, index in base.items() if index]
    half = len(names) // 2
    found += [base | dict.fromkeys(part, 0) for part in (names, names[:half], names[half:]) if part]
    alone = [base | {name: 0} for name in names]
    alone += [base | {name: base[name] // 2} for name in names if base[name] > 1]
    alone += [base | {name: base[name] - 1} for name in names if base[name] > 2]
    first = turn * most % max(1, len(alone))
    found += [*alone[first:], *alone[:first]]
    unique = {tuple(sorted(choices.items())): choices for choices in found if choices != base}
    return list(unique.values())[:most]


def _others(drawn: Drawn, names: Collection[str], most: int | None) -> Iterator[tuple[str, int]]:
    """Yield other options of the choices in ``names``, ``most`` of each or all."""
    for name, index in drawn.choices.items():
        if name in names:
            others = [other for other in range(drawn.counts[name]) if other != index]
            yield from ((name, other) for other in (others if most is None else spread(others, most)))


def spread(items: Sequence[T], most: int) -> list[T]:
    """Return at most ``most`` of ``items``, evenly spread."""
    if len(items) <= most:
        return list(items)
    return [items[place * len(items) // most] for place in range(most)]


def _redrawn(generator: Generator, choices: Sequence[Mapping[str, int]]) -> list[Drawn]:
    """Draw each once more. What is taken may differ from what was asked: a choice may bring others, or void them."""
    made = [generators.redraw(generator, each) for each in choices]
    return list({key(one): one for one in made if one.case is not None}.values())


def _difference(before: Drawn, after: Drawn) -> dict[str, int]:
    return {name: index for name, index in after.choices.items() if before.choices.get(name) != index}
