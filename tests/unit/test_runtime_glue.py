import pytest

from edgekit.runtime import glue, pins
from edgekit.runtime.fetch import fetch
from edgekit.wasm import module, sections

TEXT = (
    "function Oa(){Pa={T:Qa,f:Ra,\na:x};return{a:Pa}}function a(c){I=c.exports;c=I;"
    "h._OrtInit=c.Wa;Mc=h._free=c.vb;h._OrtRun=c.sb;za=c.zb;return I}"
)


def test_both_lists_are_read_from_minified_glue() -> None:
    found = glue.parse(TEXT)
    assert found is not None
    assert found.reads == {"Wa": "_OrtInit", "vb": "_free", "sb": "_OrtRun", "zb": "za"}
    assert found.gives == {"a": frozenset({"T", "f", "a"})}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "export default 1",
        TEXT.replace("_OrtRun", "_Other"),
        TEXT.replace("return{a:Pa}", ""),
        TEXT.replace("Pa={", "Pb={"),
    ],
)
def test_what_is_no_glue_is_not_guessed_at(text: str) -> None:
    assert glue.parse(text) is None


@pytest.mark.parametrize("variant", pins.load().variants, ids=lambda variant: variant.id)
def test_each_real_glue_fits_its_own_wasm_and_no_other(variant: pins.Variant) -> None:
    folder = fetch().folder
    found = glue.parse((folder / variant.mjs).read_text())
    assert found is not None
    assert "_OrtRun" in found.reads.values()
    fits = []
    for other in pins.load().variants:
        parsed = module.parse((folder / other.wasm).read_bytes())
        exports = {entry.name for entry in sections.exports(parsed)}
        wanted = {(entry.module, entry.name) for entry in sections.imports(parsed)}
        given = {(module_name, name) for module_name, names in found.gives.items() for name in names}
        if set(found.reads) <= exports and wanted <= given:
            fits.append(other.id)
    assert fits == [variant.id]
