"""What the report page shows, as frozen dataclasses: the contract between ``html.py`` and its template.

Every string is ready to be read; the template formats nothing and decides nothing but layout. ``kind`` is a word that
the style sheet knows: "good", "bad", "caution" or "idle".
"""

from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from edgekit.report.words import Measures

Kind = Literal["good", "bad", "caution", "idle"]


@dataclass(frozen=True)
class Bar:
    """An error on a logarithmic axis; lengths in per cent of the axis. The limit is at the same place in every bar."""

    length: float
    label: str


@dataclass(frozen=True)
class OutputRow:
    """One output of one case; ``reason`` says why it is not a match."""

    case: str
    output: str
    dtype: str
    kind: Kind
    mark: str
    words: str
    bar: Bar | None
    measures: Measures
    reason: str | None


@dataclass(frozen=True)
class OutputGroup:
    """One output over all cases: how many match, and the case that is worst."""

    matching: int
    total: int
    worst: OutputRow


@dataclass(frozen=True)
class Fact:
    """A line of the environment; ``note`` is a warning in a word or two."""

    label: str
    value: str
    note: str | None = None


@dataclass(frozen=True)
class Step:
    """One variant that was tried."""

    variant: str
    execution_provider: str
    kind: Kind
    words: str
    reason: str | None


@dataclass(frozen=True)
class TimeRow:
    """One step's time in the browser and on the desktop."""

    name: str
    browser: str
    desktop: str
    ratio: str


@dataclass(frozen=True)
class CaseRow:
    """One golden case and what it can prove; ``weak`` says in words why it proves little."""

    id: str
    origin: str
    weak: tuple[str, ...]
    ulp_shift: str
    weight_shift: str


@dataclass(frozen=True)
class Run:
    """One record and its verdict. ``rows_left_out``: matching rows beyond what a page can show."""

    number: int
    title: str
    label: str
    where: str
    kind: Kind
    mark: str
    words: str
    headline: str
    reference: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    facts: tuple[Fact, ...]
    steps: tuple[Step, ...]
    groups: tuple[OutputGroup, ...]
    wrong: tuple[OutputRow, ...]
    rows: tuple[OutputRow, ...]
    rows_left_out: int
    times: tuple[TimeRow, ...]
    cases: tuple[CaseRow, ...]
    cases_said: str
    left_out: tuple[str, ...]
    hashes: tuple[Fact, ...]
    command: str


@dataclass(frozen=True)
class Cell:
    """One record's answer in the matrix."""

    kind: Kind
    mark: str
    text: str


@dataclass(frozen=True)
class MatrixRow:
    """One output of one case across the runs of a model."""

    case: str
    output: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Matrix:
    """Runs of one model side by side; a heading for each run. ``left_out``: rows beyond what a page can show."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[MatrixRow, ...]
    left_out: int


@dataclass(frozen=True)
class Page:
    """Everything that the template reads. ``limit``: where the bars' limit is, in per cent of the axis."""

    title: str
    edgekit_version: str
    css: Markup
    css_sha256: str
    limit: float
    runs: tuple[Run, ...]
    matrices: tuple[Matrix, ...]
