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
class Span:
    """When a step of the start ran: where it begins and how long it is, in per cent of the whole start."""

    start: float
    length: float
    label: str


@dataclass(frozen=True)
class TimeRow:
    """One step's time in the browser and on the desktop; ``span``: None where it is no step of the start."""

    name: str
    span: Span | None
    browser: str
    desktop: str
    ratio: str


@dataclass(frozen=True)
class LatencyRow:
    """The times of many runs. ``ms``: for the figure, milliseconds in ascending order between spaces."""

    name: str
    count: str
    fastest: str
    middle: str
    late: str
    slowest: str
    ms: str


@dataclass(frozen=True)
class ErrorPlot:
    """The elements of an output over all cases: errors (``y``) against the reference's values (``x``).

    Numbers stand between spaces, in the order of ``x``. ``relative``: errors are multiples of what is allowed, which
    is drawn as a line at 1; else they are as they are, for none is allowed. ``said`` tells the same in words.
    """

    output: str
    dtype: str
    x: str
    y: str
    relative: bool
    said: str


@dataclass(frozen=True)
class PlacementRow:
    """What one execution provider got of the model; ``share`` in per cent of the nodes."""

    provider: str
    kind: Kind
    nodes: str
    share: float
    copies: str
    operators: str


@dataclass(frozen=True)
class SizeRow:
    """Files of the bundle: as they lie on disk, and as they travel by the compressed copies that they have."""

    name: str
    files: str
    whole: str
    brotli: str
    gzip: str


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
    """One record and its verdict. ``rows_left_out``: matching rows beyond what a page can show.

    ``start``: how long the start took in all; ``software``: the adapter, where times were taken on the CPU in place of
    a GPU; ``placed``: ``placement`` in words. All three are empty where there is nothing to say.
    """

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
    more_reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    worth: tuple[str, ...]
    facts: tuple[Fact, ...]
    steps: tuple[Step, ...]
    groups: tuple[OutputGroup, ...]
    wrong: tuple[OutputRow, ...]
    rows: tuple[OutputRow, ...]
    rows_left_out: int
    errors: tuple[ErrorPlot, ...]
    times: tuple[TimeRow, ...]
    start: str
    software: str
    latencies: tuple[LatencyRow, ...]
    placement: tuple[PlacementRow, ...]
    placed: str
    sizes: tuple[SizeRow, ...]
    files: tuple[SizeRow, ...]
    cases: tuple[CaseRow, ...]
    cases_said: str
    left_out: tuple[str, ...]
    hashes: tuple[Fact, ...]
    command: str


@dataclass(frozen=True)
class Combination:
    """One run in a line. ``share``: how much of its tolerance the worst output's error takes.

    ``software``: its times were taken on the CPU in place of a GPU.
    """

    number: int
    label: str
    where: str
    kind: Kind
    mark: str
    words: str
    worst: str
    share: str
    create: str
    first: str
    later: str
    placement: str
    software: bool


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
    """Everything that the template reads. ``limit``: where the bars' limit is, in per cent of the axis.

    ``script`` draws the figures; it is empty on a page that has none.
    """

    title: str
    edgekit_version: str
    css: Markup
    css_sha256: str
    script: Markup
    script_sha256: str
    limit: float
    combinations: tuple[Combination, ...]
    runs: tuple[Run, ...]
    matrices: tuple[Matrix, ...]
