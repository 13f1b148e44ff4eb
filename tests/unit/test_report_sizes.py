from edgekit.records.manifest import FileEntry, Manifest, ModelEntry, RuntimeEntry
from edgekit.report.sizes import file_rows, size_rows
from edgekit.report.words import size


def manifest(**sizes: int) -> Manifest:
    files = tuple(FileEntry(path, "0" * 64, count) for path, count in sorted(sizes.items()))
    model = ModelEntry("model/model.onnx", "0" * 64)
    return Manifest("0", "web", "t", "m", model, RuntimeEntry("onnxruntime-web", "1", ("jspi", "wasm")), files)


WEB = manifest(**{
    "index.html": 500, "app/main.js": 1500, "model/model.onnx": 3_000_000, "model/model.onnx.br": 1_000_000,
    "model/model.onnx.gz": 1_200_000, "model/weights.bin": 2_000_000, "runtime/a.wasm": 900, "runtime/a.wasm.br": 300,
    "runtime/stock/a.wasm": 1000, "cases/cases.json": 40, "alone.gz": 7,
})  # fmt: skip


def test_files_are_summed_by_what_they_are_for_and_copies_are_not_counted_twice() -> None:
    rows = {row.name.split(":")[0].split(",")[0]: row for row in size_rows(WEB)}
    assert rows["Model"].files == "2" and rows["Model"].whole == "5.00 MB"
    assert (rows["Model"].brotli, rows["Model"].gzip) == ("3.00 MB", "3.20 MB")  # the weights have no copies
    assert (rows["Runtime"].whole, rows["Runtime"].brotli, rows["Runtime"].gzip) == ("900 B", "300 B", "900 B")
    assert rows["Whole runtime"].whole == "1.0 kB" and rows["Golden cases"].whole == "40 B"
    assert rows["Page"].whole == "2.0 kB" and rows["Other"].whole == "7 B"
    assert rows["All"].files == "8" and list(rows)[-1] == "All"


def test_files_are_listed_the_largest_first() -> None:
    assert [row.name for row in file_rows(WEB)][:3] == ["model/model.onnx", "model/weights.bin", "app/main.js"]
    assert len(file_rows(manifest(**{f"app/{n}.js": n for n in range(300)}))) == 200


def test_nothing_known_is_no_table() -> None:
    assert size_rows(None) == file_rows(None) == ()


def test_a_size_has_its_unit() -> None:
    assert [size(n) for n in (0, 999, 1000, 999_949, 999_950, 12_345_678)] == [
        "0 B", "999 B", "1.0 kB", "999.9 kB", "1.00 MB", "12.35 MB",
    ]  # fmt: skip
