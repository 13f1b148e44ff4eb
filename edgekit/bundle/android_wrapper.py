"""What the generated wrapper of a model says: identifiers of Java made of a model's names, which come from anywhere."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from edgekit.bundle.android_names import RESERVED
from edgekit.errors import ModelError
from edgekit.facts.survey import Argument
from edgekit.records.tensors import NUMPY_DTYPES

# Names that the wrapper itself has for something else, or that every object of Java has.
_TAKEN = frozenset({"inputs", "outputs", "model", "values", "value", "tensor", "clone", "finalize", "notify", "wait"})
_PLAIN = {"float32": "float[]", "int64": "long[]", "string": "String[]"}
_MOST_CHARACTERS = 40
# A string of Java's class files has at most 65,535 bytes, and a method at most 255 parameters.
_MOST_NAME_BYTES = 20_000
_MOST_PARAMETERS = 200
_METHOD = "infer"


@dataclass(frozen=True)
class Port:
    """An input or output as the wrapper has it.

    ``said``: what it is, in words. ``dtype``: the name of edgekit.core.Dtype; None: no tensor. ``rank`` None: any
    shape. ``sizes``: as Java spells them, -1 for one that may be any; ``ones``: the same with 1 for it. ``plain``: the
    type of Java's own that holds it, where its whole shape is known; "" otherwise.
    """

    name: str
    field: str
    constant: str
    said: str
    dtype: str | None
    rank: int | None
    sizes: tuple[str, ...]
    ones: tuple[str, ...]
    plain: str


@dataclass(frozen=True)
class Wrapper:
    """What the template of the wrapper is given. ``all_plain``: every input can be given as an array of Java's own."""

    class_name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    typed_method: str
    all_plain: bool


def describe(title: str, inputs: Sequence[Argument], outputs: Sequence[Argument]) -> Wrapper:
    """Return the wrapper of a model. Raises ModelError for inputs that it could not take."""
    for argument in (*inputs, *outputs):
        if len(argument.name.encode(errors="replace")) > _MOST_NAME_BYTES:
            raise ModelError(
                f"The model has an input or output whose name has {len(argument.name):,} characters.",
                hint="Rename it: no Java class can hold that.",
            )
    for argument in inputs:
        if _dtype(argument) is None:
            raise ModelError(
                f"The input '{argument.name}' is {argument.type}, which an Android app of edgekit's does not take.",
                hint="Only tensors of numbers, booleans and strings are taken.",
            )
    if len(inputs) > _MOST_PARAMETERS:
        raise ModelError(
            f"The model has {len(inputs):,} inputs; a method of Java takes at most {_MOST_PARAMETERS} here.",
            hint="Join some of them into one.",
        )
    constants: set[str] = {"RANK_KNOWN"}
    ports_in = _ports(inputs, "input", constants)
    ports_out = _ports(outputs, "output", constants)
    return Wrapper(
        class_name=class_name(title),
        inputs=ports_in,
        outputs=ports_out,
        typed_method=_METHOD,
        # Without inputs both methods would be the same.
        all_plain=bool(ports_in) and all(port.plain for port in ports_in),
    )


def class_name(title: str) -> str:
    """Return the name of the wrapper's class: the words of the title, in ASCII, and "Model"."""
    words = _words(title)
    name = "".join(word[:1].upper() + word[1:] for word in words)[:_MOST_CHARACTERS]
    return f"{name if name[:1].isalpha() else f'The{name}'}Model"


def _ports(arguments: Iterable[Argument], kind: str, constants: set[str]) -> tuple[Port, ...]:
    fields: set[str] = set(_TAKEN)
    ports = []
    for argument in arguments:
        words = _words(argument.name)
        field = (words[0].lower() + "".join(word[:1].upper() + word[1:].lower() for word in words[1:])) if words else ""
        field = _unique(_identifier(field[:_MOST_CHARACTERS], kind), fields)
        constant = "_".join(words).upper()[:_MOST_CHARACTERS]
        constant = _unique(f"{kind.upper()}_{constant}".rstrip("_"), constants)
        ports.append(_port(argument, field, constant))
    return tuple(ports)


def _port(argument: Argument, field: str, constant: str) -> Port:
    dtype, shape = _dtype(argument), argument.shape
    sizes = tuple(size if isinstance(size, int) and size >= 0 else -1 for size in shape or ())
    axes = "" if shape is None else f" [{', '.join('?' if size is None else str(size) for size in shape)}]"
    known = shape is not None and -1 not in sizes
    return Port(
        name=argument.name,
        field=field,
        constant=constant,
        said=f"{argument.dtype or argument.type}{axes}"[:200],
        dtype=dtype,
        rank=None if shape is None else len(shape),
        sizes=tuple(map(_long, sizes)),
        ones=tuple(_long(1 if size == -1 else size) for size in sizes),
        plain=_PLAIN.get(argument.dtype or "", "") if known else "",
    )


def _long(size: int) -> str:
    return f"{size}L" if size >= 1 << 31 else str(size)


def _dtype(argument: Argument) -> str | None:
    known = argument.dtype is not None and (argument.dtype in NUMPY_DTYPES or argument.dtype == "string")
    return argument.dtype.upper() if known and argument.dtype else None


def _words(name: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    # A change from small to capital letters begins a word, too.
    return re.findall(r"[A-Za-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", plain))


def _identifier(text: str, kind: str) -> str:
    if not text or not text[0].isalpha():
        return f"{kind}{text}" if text else kind
    return f"{text}Value" if text in RESERVED else text


def _unique(text: str, taken: set[str]) -> str:
    number, chosen = 2, text
    while chosen in taken:
        chosen = f"{text}{number}"
        number += 1
    taken.add(chosen)
    return chosen
