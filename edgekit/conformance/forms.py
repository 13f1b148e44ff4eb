"""The forms of one operator: every schema version and combination of dtypes, each a case when it is asked for."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from onnx.defs import OpSchema

from edgekit.conformance.cases import Case
from edgekit.conformance.generate import Template, case_of, combinations, templates, versions


@dataclass(frozen=True, eq=False)
class Forms:
    """Every form in which one operator can be tried: a schema version with an opset, and dtypes."""

    entries: tuple[tuple[OpSchema, int, tuple[str, ...]], ...]
    templates: tuple[Template, ...]

    def __len__(self) -> int:
        return len(self.entries)

    def draw(self, index: int, choose: Callable[[int], int]) -> Case | None:
        """Return the case of form ``index`` from the template that ``choose`` picks out of a number of them.

        Where that template does not make a valid model of the form, the next one that does; None where none does.
        """
        schema, opset, dtypes = self.entries[index]
        first = choose(len(self.templates))
        made = (
            case_of(schema, opset, template, dtypes) for template in (*self.templates[first:], *self.templates[:first])
        )
        return next((case for case in made if case is not None), None)


def forms(
    standard: tuple[Case, ...], domain: str, op_type: str, can: Callable[[OpSchema, tuple[str, ...]], bool]
) -> Forms:
    """Return the forms of one operator that ``can`` lets pass: none where ``standard`` has no template of it."""
    candidates = _templates_of(standard).get((domain, op_type), [])
    entries = [
        (schema, opset, dtypes)
        for schema, opset in (versions(domain, op_type) if candidates else ())
        for dtypes in combinations(schema, candidates)
        if can(schema, dtypes)
    ]
    return Forms(tuple(entries), tuple(candidates))


@lru_cache(maxsize=1)
def _templates_of(standard: tuple[Case, ...]) -> dict[tuple[str, str], list[Template]]:
    return templates(standard)
