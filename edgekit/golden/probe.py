"""Find what a graph takes, by running it: sizes of its free dimensions, ranges of its integers, settings.

Few child processes, each with many feeds: a process and a session cost about a second, a refused feed a millisecond.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from edgekit.desktop.run import DesktopResult, Feed
from edgekit.errors import ModelError
from edgekit.facts.index_ranges import index_limit
from edgekit.facts.survey import Argument
from edgekit.golden import constants, dims, inputs, vocabulary
from edgekit.golden.dims import Sizes
from edgekit.golden.inputs import FLOATS, Domain, Recipe, recipe
from edgekit.model import walk
from edgekit.model.io import LoadedModel
from edgekit.records.cases import FeedBack
from edgekit.records.tensors import Value

_FIRST_BATCHES = (8, 32, 64, 128)
_RANGES = tuple(itertools.product((127, 31, 15, 7, 3, 1), (0, 1)))
_MOST_KNOWN_SIZES = 24
_LIKELY_RANKS = (2, 4, 3, 1, 0)
_WIDE = 64
_DOING_SIZES = "Looking for sizes that the model takes"

Run = Callable[[Sequence[Feed], str], tuple[DesktopResult, ...]]


@dataclass(frozen=True)
class Setup:
    """One way to call the model: a size for each free dimension, and which of each scalar's settings."""

    sizes: Sizes
    setting: int = 0


@dataclass(frozen=True)
class Plan:
    """What the graph takes. ``setups``: the base first; at least one. ``refused``: what it does not take, in words.

    ``wide``: the base with a batch of 64, where there is a batch; nobody knows whether the graph takes it.
    """

    inputs: tuple[Argument, ...]
    domains: Mapping[str, Domain]
    setups: tuple[Setup, ...]
    feed_back: FeedBack | None = None
    refused: tuple[str, ...] = ()
    wide: Setup | None = None

    @property
    def exact(self) -> frozenset[str]:
        """Inputs whose values mean what they are: see ``Domain.exact``."""
        return frozenset(name for name, domain in self.domains.items() if domain.exact)

    def describe(self, setup: Setup) -> str:
        """Say a setup in words: sizes and settings."""
        settings = {n: d.settings[setup.setting % len(d.settings)] for n, d in self.domains.items() if d.settings}
        return ", ".join(f"{name}={value:g}" for name, value in {**setup.sizes, **settings}.items())

    def feed(self, how: Recipe, setup: Setup) -> Feed:
        """Make the inputs of one case. An input that is fed back starts at zero, as a state does in real use."""
        how = replace(how, setting=setup.setting)
        return Feed(tuple(self._value(argument, how, setup) for argument in self.inputs), self.feed_back)

    def is_looped(self, name: str) -> bool:
        return self.feed_back is not None and name in self.feed_back.links

    def _value(self, argument: Argument, how: Recipe, setup: Setup) -> Value:
        if self.is_looped(argument.name):
            how = replace(how, kind="zeros")
        shape = dims.shape_of(argument, setup.sizes)
        return inputs.fill(argument, shape, how, self.domains.get(argument.name, Domain()))


def explore(
    model: LoadedModel, arguments: Sequence[Argument], frozen: Sizes, feed_back: FeedBack | None, run: Run
) -> Plan:
    """Find a way to call the model, then other sizes, ranges and settings that it takes as well.

    ``run`` runs feeds on the model and returns their results. Raises UsageError when ``frozen`` names a dimension that
    does not exist, ModelError with the runtime's reason when it takes nothing of what was tried.
    """
    errors = []
    for known in _ranks(arguments):
        axes = dims.free_axes(known, frozen)
        plan = Plan(tuple(known), _first_domains(model, known), (), feed_back)
        try:
            base = _first_setup(model, plan, axes, frozen, run)
        except ModelError as error:
            errors.append(error)
            continue
        return _with_setups(_with_ranges(model, replace(plan, setups=(base,)), run), axes, frozen, run)
    raise errors[0]


def _ranks(arguments: Sequence[Argument]) -> Iterator[Sequence[Argument]]:
    """Yield the arguments, with every likely rank where a rank is unknown."""
    if all(argument.shape is not None for argument in arguments):
        yield arguments
        return
    for rank in _LIKELY_RANKS:
        yield [replace(a, shape=(None,) * rank) if a.shape is None else a for a in arguments]


def _first_domains(model: LoadedModel, arguments: Sequence[Argument]) -> dict[str, Domain]:
    """Return what can be known without running: settings, 8-bit ranges, and for other integers the safest: 0 and 1."""
    settings = constants.settings(model, arguments)
    domains = {name: Domain(words=known) for name, known in vocabulary.words(model, arguments).items()}
    for argument in arguments:
        if argument.name in settings:
            domains[argument.name] = Domain(settings=settings[argument.name])
        elif _is_integer(argument):
            domains[argument.name] = inputs.whole_range(str(argument.dtype)) or Domain(0, 1)
        elif argument.dtype in FLOATS and _is_mask(argument):
            domains[argument.name] = Domain(0, 1, whole=True)
        elif argument.dtype in FLOATS and (limit := index_limit(model, argument.name)) is not None:
            domains[argument.name] = Domain(0, limit - 1, whole=True)
    return domains


def _is_mask(argument: Argument) -> bool:
    return "mask" in argument.name.lower()


def _is_integer(argument: Argument) -> bool:
    return argument.dtype is not None and argument.dtype not in (*FLOATS, "bool", "string")


def _first_setup(model: LoadedModel, plan: Plan, axes: Sequence[dims.Axis], frozen: Sizes, run: Run) -> Setup:
    """Try sizes, in batches that grow, until the runtime takes one."""
    usual = recipe("normal", 0)
    tries = _attempts(model, plan, axes, frozen)
    refusals: Counter[str] = Counter()
    for count in _FIRST_BATCHES:
        batch = list(itertools.islice(tries, count))
        if not batch:
            break
        # Ones first: an integer that is a length, a count or an index is seldom refused as 1, often as 0.
        feeds = [plan.feed(replace(usual, kind=kind), setup) for kind, setup in batch]
        for (_, setup), result in zip(batch, run(feeds, _DOING_SIZES), strict=True):
            if result.outputs is not None:
                return setup
            refusals[result.error or "no reason given"] += 1
    if not refusals:
        raise ModelError("The inputs are too large for golden cases.", hint="Make a dimension smaller with --dim.")
    reason = refusals.most_common(1)[0][0]
    names = ", ".join(f"--dim {axis.key}=N" for axis in axes[:3])
    say_sizes = f"State the sizes that it takes ({names}), or give real inputs" if names else "Give real inputs"
    raise ModelError(
        f"{model.path}: desktop onnxruntime refuses all {refusals.total()} inputs that were tried: {reason}",
        hint=f"{say_sizes} with --sample.",
    )


def _attempts(
    model: LoadedModel, plan: Plan, axes: Sequence[dims.Axis], frozen: Sizes
) -> Iterator[tuple[inputs.Kind, Setup]]:
    settings = range(max(1, _count_settings(plan)))
    integers = any(_is_integer(argument) for argument in plan.inputs)
    kinds: tuple[inputs.Kind, ...] = ("ones", "normal", "zeros") if integers else ("normal",)
    tries = itertools.product(kinds, dims.first_sizes(axes, _known_sizes(model)))
    for kind, sizes in itertools.chain(tries, itertools.product(kinds[:1], dims.last_sizes(axes))):
        complete = {**frozen, **sizes}
        if dims.fits(plan.inputs, complete):
            yield from ((kind, Setup(complete, setting)) for setting in settings)


def _known_sizes(model: LoadedModel) -> list[int]:
    """Return the sizes of the model's own weights, the most frequent first."""
    sizes = Counter(
        int(size) for graph in walk.all_graphs(model.proto) for tensor in graph.initializer for size in tensor.dims
    )
    return [size for size, _ in sizes.most_common(_MOST_KNOWN_SIZES) if size > 1]


def _with_ranges(model: LoadedModel, plan: Plan, run: Run) -> Plan:
    """Widen the range of each integer input as far as the graph lets it; then see which ones take negative values."""
    open_inputs = [a for a in plan.inputs if plan.domains.get(a.name) == Domain(0, 1) and not plan.is_looped(a.name)]
    tries = [(argument.name, domain) for argument in open_inputs for domain in _ranges(model, argument)]
    # In a dict the last one wins: the widest, which is proposed first.
    domains = {**plan.domains, **dict(reversed(_accepted(plan, "normal", tries, run)))}
    plan = replace(plan, domains=domains)
    signed = [a for a in open_inputs if not str(a.dtype).startswith("uint") and not _is_mask(a)]
    tries = [(argument.name, replace(domains[argument.name], signed=True)) for argument in signed]
    return replace(plan, domains={**domains, **dict(_accepted(plan, "negative", tries, run))})


def _accepted(plan: Plan, kind: inputs.Kind, tries: Sequence[tuple[str, Domain]], run: Run) -> list[tuple[str, Domain]]:
    """Return those of the domains that the runtime takes, one input at a time, while other integers stay at one.

    Both ends must be taken as well as what lies between: a scalar shows only one value of its range at a time.
    """
    base, how, still = plan.setups[0], recipe(kind, 0), plan.feed(recipe("ones", 0), plan.setups[0])
    feeds = []
    for name, domain in tries:
        for part in (domain, replace(domain, low=domain.high), replace(domain, high=domain.low)):
            varied = replace(plan, domains={**plan.domains, name: part}).feed(how, base)
            pairs = zip(varied.inputs, still.inputs, strict=True)
            feeds.append(Feed(tuple(new if new.name == name else old for new, old in pairs), plan.feed_back))
    results = iter(run(feeds, "Looking for the range of integer inputs") if feeds else ())
    parts = zip(results, results, results, strict=True)
    return [one for one, three in zip(tries, parts, strict=True) if all(part.outputs is not None for part in three)]


def _ranges(model: LoadedModel, argument: Argument) -> Iterable[Domain]:
    """Propose ranges, the widest first: below the table that it indexes; a mask; else from 127 downwards."""
    if _is_mask(argument):
        return [Domain(0, 1)]
    limit = index_limit(model, argument.name)
    known = [Domain(0, limit - 1), Domain(0, limit // 2)] if limit is not None else []
    return known + [Domain(low, high) for high, low in _RANGES]


def _with_setups(plan: Plan, axes: Sequence[dims.Axis], frozen: Sizes, run: Run) -> Plan:
    """Add other sizes and settings that the graph takes."""
    base = plan.setups[0]
    proposed = [{**frozen, **sizes} for sizes in dims.other_sizes(axes, _free(base, axes))]
    proposed = [sizes for sizes in proposed if dims.fits(plan.inputs, sizes)]
    settings = [n for n in range(_count_settings(plan)) if n != base.setting]
    setups = [Setup(sizes, base.setting) for sizes in proposed]
    # Each setting may want sizes of its own: silero VAD takes other lengths at 8000 Hz than at 16000.
    setups += [Setup(sizes, setting) for setting in settings for sizes in (base.sizes, *proposed)]
    results = run([plan.feed(recipe("normal", 0), setup) for setup in setups], _DOING_SIZES) if setups else ()
    taken = [setup for setup, result in zip(setups, results, strict=True) if result.outputs is not None]
    sizes = dims.choose(axes, _free(base, axes), [_free(s, axes) for s in taken if s.setting == base.setting])
    chosen = [Setup({**frozen, **one}, base.setting) for one in sizes]
    for setting in settings:
        chosen += [setup for setup in taken if setup.setting == setting][:1]
    single = [axis.key for axis in axes if all(s.sizes[axis.key] == base.sizes[axis.key] for s in chosen)]
    refused = tuple(
        f"Other sizes of {key} than {base.sizes[key]}: the desktop runtime refuses those tried." for key in single
    )
    batch = {axis.key: _WIDE for axis in axes if axis.role == "batch"}
    wide = Setup({**base.sizes, **batch}, base.setting) if batch else None
    return replace(plan, setups=tuple(chosen), refused=refused, wide=wide)


def _count_settings(plan: Plan) -> int:
    return max((len(domain.settings) for domain in plan.domains.values()), default=0)


def _free(setup: Setup, axes: Sequence[dims.Axis]) -> dict[str, int]:
    return {axis.key: setup.sizes[axis.key] for axis in axes}
