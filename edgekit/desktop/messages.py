"""Make onnxruntime's error messages readable: what is wrong, without source paths and C++ signatures."""

import re

_PREFIX = re.compile(r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ :\s*|^ERROR_CODE: \d+, ERROR_MESSAGE: ")
_NODE = re.compile(
    r"Non-zero status code returned while running (?P<op>\S+) node\.? Name:'(?P<name>.*?)' Status Message: ", re.DOTALL
)
_LOCATION = re.compile(r"(?:[^\s:\"']*/)?\w[\w.\-]*\.(?:cc|cpp|h|hpp|cu):\d+ ")
_AFTER_SIGNATURE = re.compile(r"^(?: const\b|::<lambda[^>]*>|::operator\(\)| \[with [^\]]*\])*\s*")
_CONDITION = re.compile(r"^[^\"]{1,200}? was false\. (?=\S)")
_STACK = re.compile(r"\s*\bStacktrace:.*", re.DOTALL)
_LONGEST = 500
# The patterns look for what may begin anywhere: in a name of a million characters that takes hours.
_LONG_WORD = re.compile(r"\S{300,}")
_MOST_READ = 8000


def readable(text: str, *, model: str | None = None) -> str:
    """Return ``text`` on one line of at most 500 characters, without error codes, source paths and signatures.

    ``model``: the path under which the runtime read the model; its mention is removed.
    """
    if model is not None:
        text = text.replace(f"Load model from {model} failed:", "")
    text = _LONG_WORD.sub(lambda match: f"{match[0][:100]}…{match[0][-100:]}", text)
    if len(text) > _MOST_READ:
        text = f"{text[: _MOST_READ // 2]} … {text[-_MOST_READ // 2 :]}"
    text = _PREFIX.sub("", _STACK.sub("", text).strip())
    text = _NODE.sub(lambda match: f"{_node(match['op'], match['name'])}: ", text)
    while (place := _LOCATION.search(text)) is not None:
        text = text[: place.start()] + _CONDITION.sub("", _without_signature(text[place.end() :]))
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _node(operator: str, name: str) -> str:
    return f"{operator} node '{name}'" if name else f"{operator} node without a name"


def _without_signature(text: str) -> str:
    """Cut the function that comes first: ``Compute ...`` or ``void a::B::C(int, D<E>) const ...``."""
    opening = text.find("(")
    before = text[:opening] if opening >= 0 else ""
    # Prose before the parenthesis means that it belongs to the message, not to a signature.
    if opening < 0 or not ("::" in before or re.fullmatch(r"[\w&*<>, ]*\w", before)) or ". " in before:
        return re.sub(r"^\w+ ", "", text, count=1)
    depth = 0
    for position in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return _AFTER_SIGNATURE.sub("", text[position + 1 :])
    return text


_UNKNOWN = re.compile(r"(?P<domain>[\w.\-]*):(?P<op>\w+)\(-?\d+\) is not a registered function/op")
_UNREGISTERED = re.compile(r"No Op registered for (?P<op>\w+) with domain_version of (?P<version>\d+)")
NO_KERNEL = re.compile(
    r"Could not find an implementation for (?P<op>[\w.:]+)\((?P<version>\d+)\) node with name '(?P<name>.*?)'"
)
_IR = re.compile(r"Unsupported model IR version: (?P<found>\d+), max supported IR version: (?P<highest>\d+)")
_OPSET = re.compile(
    r"Opset (?P<found>\d+) is under development.*for domain (?P<domain>\S+) is till opset (?P<highest>\d+)"
)


def explained(reason: str) -> tuple[str, str | None]:
    """Turn the readable reason why no session could be created into a clause, and a hint where one helps.

    The clause follows the model's name: "model.onnx" + " uses the operator ...".
    """
    if found := _UNKNOWN.search(reason):
        name = f"{found['domain']}::{found['op']}" if found["domain"] else found["op"]
        return (
            f"uses the operator '{name}', which onnxruntime does not have",
            "Export the model without custom operators, or express this one as a local function of standard operators.",
        )
    if found := _UNREGISTERED.search(reason):
        return (
            f"uses the operator '{found['op']}', which opset {found['version']} does not have",
            "Export the model again with an opset that has it.",
        )
    if found := NO_KERNEL.search(reason):
        where = _node(found["op"], found["name"])
        return (
            f"uses {where} (opset {found['version']}) with data types for which onnxruntime has no CPU kernel",
            "Change the data type around this node (float64 or int16 to float32, say) and export again.",
        )
    if found := _IR.search(reason):
        return (
            f"has IR version {found['found']}; the desktop onnxruntime reads up to {found['highest']}",
            "Export the model with an older onnx package.",
        )
    if found := _OPSET.search(reason):
        return (
            f"uses opset {found['found']} of {found['domain']}; the desktop onnxruntime has up to {found['highest']}",
            "Export the model with a lower opset.",
        )
    return f"cannot be loaded by the desktop onnxruntime: {reason}", None
