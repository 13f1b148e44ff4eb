"""Cure a bundle that fails parity: find the settings, prove them in every combination, and write them into it."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from edgekit import matrix, parity, runtime_trim
from edgekit.bundle.destination import check as check_destination
from edgekit.bundle.open import open_bundle, require_kind, require_variant
from edgekit.errors import UsageError
from edgekit.files import Beside, json_bytes, temporary_folder
from edgekit.progress import Progress, silent
from edgekit.repair import parts as writing
from edgekit.repair import result as results
from edgekit.repair import search as searching
from edgekit.repair.candidates import Candidate
from edgekit.repair.parts import Cut, Parts
from edgekit.repair.result import Proof, Repair, proofs
from edgekit.repair.search import Found, RepairOptions
from edgekit.targets.options import WEB


def repair(
    folder: Path,
    options: RepairOptions,
    *,
    browser_path: Path | None = None,
    beside: Callable[[Path], Beside | None] = lambda work: None,
    progress: Progress = silent,
) -> Repair:
    """Cure the bundle in ``folder``; it is replaced as a whole, by one that passes, or not touched.

    ``browser_path``: the Chromium in which runtimes are cut again, where they were cut. ``beside``: given a folder to
    work in, returns what makes the files that lie beside the bundle; see ``edgekit.files.replace_folder``. Raises
    BundleError for a folder that is no bundle, UsageError where its target or runtime is not at hand or it lacks a
    variant that is asked for, MissingToolError without a browser, ParityError where a combination that was asked for
    cannot run.
    """
    opened = parity.open_folder(folder, progress)
    require_kind(opened.bundle, WEB, "repair")
    for variant in options.variants:
        require_variant(opened.bundle, variant)
    # Before the minutes of work, not after them.
    check_destination(folder, force=True, sources=[])
    with temporary_folder(Path(os.path.realpath(folder))) as work:
        parts = writing.of_bundle(
            opened.bundle,
            opened.case_set,
            work,
            targets_dir=options.targets_dir,
            runtime_dir=options.runtime,
            progress=progress,
        )
        found = searching.search(folder, parts, options, work, progress=progress)
        done, choice = choose(found, options, work, browser_path=browser_path, progress=progress)
        if choice is None:
            return done
        if open_bundle(folder, verify=False).manifest_sha256 != opened.bundle.manifest_sha256:
            raise UsageError(f"{folder} was replaced while it was repaired.", hint="Run the command again.")
        candidate, changed, cut = choice
        report = json_bytes(results.to_json(done))
        progress("Writing the bundle")
        manifest = writing.write(
            changed, candidate, folder, cut=cut.shipped if cut else None, report=report, copies=True, force=True,
            beside=beside(work), progress=progress,
        )  # fmt: skip
        weighed = runtime_trim.sizes(manifest, parts.runtime, cut.variants, cut.runtimes) if cut else ()
        return replace(done, runtimes=weighed)


Choice = tuple[Candidate, Parts, Cut | None]


def choose(
    found: Found, options: RepairOptions, work: Path, *, browser_path: Path | None = None, progress: Progress = silent
) -> tuple[Repair, Choice | None]:
    """Return the first of what passed that does so in every combination, as it would be shipped; None: none does."""
    refused: list[str] = []
    for number, (candidate, parts) in enumerate(found.best):
        draft = work / f"chosen-{number}"
        writing.write(parts, candidate, draft)
        cut = writing.cut_again(
            parts, candidate, draft, work / f"cut-{number}", browser_path=browser_path, progress=progress
        )
        if cut is not None:
            writing.write(parts, candidate, draft, cut=cut.shipped, force=True)
        # What ran already, with the same runtimes, need not run again.
        ran = next((one.proofs for one in found.repair.tried if one.name == candidate.name), ())
        after = _after(draft, candidate, parts, options, () if cut else ran, progress)
        if all(proof.status == "passed" for proof in after):
            done = replace(found.repair, status="repaired", chosen=candidate.name, after=after)
            return _with_reasons(done, refused, found), (candidate, parts, cut)
        failed = next(proof for proof in after if proof.status != "passed")
        refused.append(f"{failed.browser} {failed.variant}: {failed.note or failed.status}")
    return _with_reasons(replace(found.repair, chosen_by=None), refused, found), None


def _after(
    draft: Path,
    candidate: Candidate,
    parts: Parts,
    options: RepairOptions,
    ran: tuple[Proof, ...],
    progress: Progress,
) -> tuple[Proof, ...]:
    shipped = candidate.variants or parts.target.runtime.variants
    asked = [name for name in options.variants or shipped if name in shipped] or list(shipped)
    variants = [name for name in asked if name not in {proof.variant for proof in ran}]
    if not variants:
        return ran
    rows = matrix.verify(draft, matrix.combinations(options.browsers, variants, ()), options.parity, progress=progress)
    return (*ran, *proofs(rows))


def _with_reasons(repair: Repair, refused: list[str], found: Found) -> Repair:
    """Say of what passed at first why it was not chosen, where it failed in another combination."""
    named = {candidate.name: why for (candidate, _), why in zip(found.best, refused, strict=False)}
    tried = tuple(replace(one, reason=named.get(one.name, one.reason)) for one in repair.tried)
    return replace(repair, tried=tried)
