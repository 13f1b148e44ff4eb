"""Write the pages of the reference that come from the code: the command line, the device targets, the operators.

Run ``python docs/generate.py`` after changing a command's options or a target file; a test fails while a page is stale.
"""

from collections.abc import Iterator
from pathlib import Path

import click

from edgekit.cli.main import SUMMARIES, cli
from edgekit.conformance import summary
from edgekit.conformance import table as tables
from edgekit.parity import runner_names
from edgekit.runtime import pins
from edgekit.targets import load as targets

REFERENCE = Path(__file__).resolve().parent / "reference"
_NOTE = "<!-- Written by docs/generate.py. Change the code, then run that. -->\n"
_WIDTH = 100

_TARGET_FORMAT = """
## A target of your own

Write `targets/lean.toml`. Three lines leave the variant `asyncify`, the largest file, out of `webgpu`; a browser that
has WebGPU without JSPI then falls to `wasm`:

```toml
extends = "webgpu"
[runtime]
variants = ["jspi", "wasm"]
```

```sh
edgekit targets show lean --targets-dir targets
edgekit build model.onnx --target lean --targets-dir targets -o bundle
edgekit parity bundle --targets-dir targets
```

`extends` takes over everything that the file does not state itself, table by table and key by key; a list is replaced
as a whole. It names another file of the same folder or, where there is none, a target that comes with edgekit, and goes
one level deep. Without `extends` every key is needed, but for those with a default. An unknown key is an error.

| key | type | what it says |
|---|---|---|
| `extends` | text | the target that this one changes; optional |
| `title` | text | what it is, in a line |
| `kind` | text | what is built: `web`, a page; `linux`, a folder for a device; `android`, a Gradle project |
| `runtime.package` | text | the package of the runtime: `onnxruntime-web`, `onnxruntime` or `onnxruntime-android` |
| `runtime.variants` | list of text | the runtime's variants in order of preference, of VARIANTS |
| `runtime.threads` | integer | how many threads; 0, the default: as many as the device has cores, at most four |
| `limits.file_bytes` | integer | the largest file that its host serves; a larger one is a warning |
| `limits.ir_version` | integer | the newest ONNX IR version that it runs |
| `limits.opset` | integer | the newest ONNX opset that it runs |
| `tolerance.DTYPE` | table | `{ relative = N, absolute = N }`, both 0 or more; a dtype without one must be equal |
| `parity.runner` | text | the browser that parity drives, of RUNNERS; or `emulated`, `adb`, which reach devices |
| `linux.machine` | text | the processor, as `uname -m` says it |
| `linux.systems` | list of text | systems it may run, as /etc/os-release has them: `id` or `id:codename`; empty: any |
| `linux.pythons` | list of text | versions of Python that those systems have; wheels of each travel |
| `linux.cores` | list of integer | the cores that inference is pinned to; empty: any |
| `linux.cpu` | text | the processor's name, for wheels that crash on it and for emulation, such as `cortex-a72` |
| `linux.memory_max_bytes` | integer | what the service may take; 0, the default: no bound |
| `android.abis` | list of text | the processors that an Android app has native code for |
| `android.min_sdk`, `android.target_sdk` | integer | API levels of Android |
| `android.page` | text | the web target whose page `--apk` shows |

The execution provider of the first variant is the one that parity asks for: when another one runs, the verdict is
"refused", or with `--allow-fallback` "passed" for that variant alone.
"""


def help_texts() -> Iterator[tuple[str, str]]:
    """Yield each command line and its help, groups before their commands, the same on every terminal."""
    yield from _help(cli, click.Context(cli, info_name="edgekit", terminal_width=_WIDTH, max_content_width=_WIDTH))


def _help(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, str]]:
    yield ctx.command_path, command.get_help(ctx)
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            child = command.get_command(ctx, name)
            if child is not None:
                yield from _help(child, child.context_class(child, info_name=name, parent=ctx))


def command_line() -> str:
    """Return the page of every command: its help, word for word."""
    parts = [
        _NOTE,
        "# The command line\n",
        "Data go to stdout and talk to stderr. `--json` writes the data as JSON. The exit codes are those of",
        "[errors.md](errors.md).\n",
        "| command | what it does |\n|---|---|",
        *(f"| [`edgekit {name}`](#edgekit-{name}) | {summary} |" for name, summary in SUMMARIES.items()),
        "",
    ]
    for path, text in help_texts():
        parts.append(f"## {path}\n\n```text\n{text.rstrip()}\n```\n")
    return "\n".join(parts)


def target_table() -> str:
    """Return the page of the device targets that come with edgekit."""
    parts = [
        _NOTE,
        "# Device targets\n",
        "A target is one file of `device_targets/`, and its id is the name of the file. `--targets-dir` reads a folder",
        "of your own.\n",
        "| target | what it is | kind | variants, in order of preference | largest file | IR, opset |",
        "|---|---|---|---|---|---|",
    ]
    loaded = [targets.load(target_id) for target_id in targets.ids()]
    for t in loaded:
        variants = ", ".join(t.runtime.variants)
        parts.append(
            f"| `{t.id}` | {t.title} | {t.kind} | {variants} | {t.limits.file_bytes / 2**20:g} MiB "
            f"| {t.limits.ir_version}, {t.limits.opset} |"
        )
    parts += [
        "",
        "## Tolerances\n",
        "An element passes when its error is at most absolute + relative × the largest magnitude of the reference",
        "output. Integers, booleans and strings must be equal.\n",
        "| target | dtype | relative | absolute |",
        "|---|---|---|---|",
    ]
    for t in loaded:
        parts += [f"| `{t.id}` | {dtype} | {v.relative:g} | {v.absolute:g} |" for dtype, v in t.tolerance.items()]
    return "\n".join(parts) + "\n" + _target_format()


def _target_format() -> str:
    named = {
        "VARIANTS": ", ".join(f"`{v.id}` ({v.execution_provider})" for v in pins.load().variants),
        "RUNNERS": ", ".join(f"`{name}`" for name in runner_names()),
    }
    text = _TARGET_FORMAT
    for word, names in named.items():
        text = text.replace(word, names)
    return text


def operator_support() -> str:
    """Return the page of what the runtimes were measured to do, from the tables in the package."""
    measured = [tables.load(*key) for key in tables.available()]
    order = ("cpu", "wasm", "webgpu")
    measured.sort(key=lambda table: (order.index(table.runtime.execution_provider), table.runtime.variant))
    head = [
        _NOTE,
        "# Operators, measured\n",
        "Not from a list of what should work, but from what did: every conformance case of the onnx package, and cases",
        "made from them for each schema version and dtype, run on the desktop and in Chromium. `python -m",
        "edgekit.conformance_run` measures all of it anew and writes `edgekit/conformance/tables`.\n",
    ]
    return "\n".join(head) + "\n" + summary.page(measured)


def pages() -> dict[Path, str]:
    """Return every generated page and its text."""
    return {
        REFERENCE / "cli.md": command_line(),
        REFERENCE / "targets.md": target_table(),
        REFERENCE / "operators.md": operator_support(),
    }


def main() -> None:
    """Write the pages."""
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
