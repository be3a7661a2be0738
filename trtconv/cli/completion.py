"""What TAB offers for a value: targets, rules, dims, factories, topics. Nothing here imports torch, onnx or a rule.

A value that cannot be read (a file that is not there, a broken TOML) offers nothing; completion never fails aloud.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class

Source = Callable[[click.Context, str], Iterable[str]]
# The name stands in the rule, or in a constant above it.
_RULE = re.compile(r'^RULE = (?:pattern_rule\(\s*"([^"]+)"|.*?\bname=(?:"([^"]+)"|NAME))', re.MULTILINE | re.DOTALL)
_RULE_NAME = re.compile(r'^NAME = "([^"]+)"', re.MULTILINE)
_FUNCTION = re.compile(r"^(?:def|class) ([A-Za-z]\w*)|^([A-Za-z]\w*) *=(?!=)", re.MULTILINE)
_INPUT_DIMS = re.compile(r"\[([^\[\]]*)\]")
_RANGE_TABLE = "dynamic"


def target_names(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """`tensorrt==8.6`, `tensorrt==10` and so on."""
    from trtconv.core.targets import KNOWN_TARGETS

    return KNOWN_TARGETS


def rule_names(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """The names of the built-in rules, read out of their files: importing them takes a second."""
    import trtconv

    folder = Path(trtconv.__file__).parent / "rewrite" / "rules"
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        match = _RULE.search(text)
        if match is not None:
            yield match[1] or match[2] or "".join(_RULE_NAME.findall(text))


def dim_ranges(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """`N=` for each dim that an --input, the config, or the record beside the ONNX file names.

    Its range, where one is recorded, is offered once the name and `=` are typed.
    """
    ranges = _recorded_ranges(ctx)
    for text in (*_texts(ctx, "input"), *_manifest_inputs(ctx)):
        for dims in _INPUT_DIMS.findall(text):
            for name in (d.strip() for d in dims.split(",")):
                if name.isidentifier():
                    ranges.setdefault(name, "")
    for name, text in ranges.items():
        yield f"{name}={text}" if incomplete.startswith(f"{name}=") else f"{name}="


def input_names(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """The inputs that the config or the ONNX file's manifest names, as `images:float32[N,3,H,W]`."""
    sections = _config(ctx).get("input", [])
    for section in sections if isinstance(sections, list) else []:
        if isinstance(section, dict) and "name" in section:
            dims = ",".join(str(d) for d in section.get("dims", []))
            yield f"{section['name']}:{section.get('dtype', 'float32')}[{dims}]"
    yield from _manifest_inputs(ctx)


def factories(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """`net.py:make_net` for each function and class of the file, once the colon is typed; the file is not run."""
    file, colon, _ = incomplete.rpartition(":")
    if not colon or not file.endswith(".py"):
        return []
    names = (m[1] or m[2] for m in _FUNCTION.finditer(Path(file).read_text(encoding="utf-8")))
    return dict.fromkeys(f"{file}:{name}" for name in names)


def topics(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """The pages of the documentation."""
    from trtconv.cli.pages import list_pages
    from trtconv.core.errors import TrtconvError

    try:
        return [page.topic for page in list_pages()]
    except TrtconvError:
        return []


SOURCES: dict[str, Source] = {
    "topic": topics,
    "target": target_names,
    "rule": rule_names,
    "range": dim_ranges,
    "input": input_names,
    "factory": factories,
}


def completer(kind: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Click's callback for a parameter whose values are of this kind; a factory's file is completed by the shell."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            values = [v for v in SOURCES[kind](ctx, incomplete) if v.startswith(incomplete)]
        except (OSError, ValueError):
            values = []
        if kind == "factory" and not values and ":" not in incomplete:
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(v) for v in values]

    return complete


def _texts(ctx: click.Context, name: str) -> tuple[str, ...]:
    value = ctx.params.get(name) or ()
    return tuple(v for v in (value if isinstance(value, tuple) else (value,)) if isinstance(v, str))


def _config(ctx: click.Context) -> dict[str, Any]:
    from trtconv.core.config import toml_reader

    path = ctx.params.get("config")
    data = toml_reader().loads(Path(path).read_text(encoding="utf-8")) if path else {}
    return data if isinstance(data, dict) else {}


def _manifest(ctx: click.Context) -> dict[str, Any]:
    """What export or rewrite recorded beside the ONNX file; a file of others has none."""
    from trtconv.core.text.json_text import parse_json

    for name in ("model", "subject"):
        path = Path(str(ctx.params.get(name) or ""))
        for stem in (path.name, path.name.removesuffix(".trt.onnx") + ".onnx"):
            record = path.with_name(f"{stem}.json") if path.name else path
            if path.suffix == ".onnx" and record.is_file():
                data = parse_json(record.read_text(encoding="utf-8"))
                return data if isinstance(data, dict) else {}
    return {}


def _manifest_inputs(ctx: click.Context) -> tuple[str, ...]:
    inputs = _manifest(ctx).get("inputs", [])
    return tuple(str(i) for i in inputs) if isinstance(inputs, list) else ()


def _recorded_ranges(ctx: click.Context) -> dict[str, str]:
    words = str(_manifest(ctx).get("space") or "").split()
    ranges = dict(w.split("=", 1) for w in words if "=" in w)
    table = _config(ctx).get(_RANGE_TABLE, {})
    return ranges | {str(k): str(v) for k, v in (table.items() if isinstance(table, dict) else ())}


class WholeWordBash(BashComplete):
    """Bash splits words at `=` and `:`, which stand in targets, ranges and factories; here a word is what blanks part.

    The line itself comes in COMP_LINE, up to the cursor; without it (another caller) the words are click's.
    """

    source_template = """\
%(complete_func)s() {
    local IFS=$'\\n' response completion type value
    response=$(env COMP_LINE="${COMP_LINE:0:$COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \\
        COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD %(complete_var)s=bash_complete $1)
    for completion in $response; do
        IFS=',' read type value <<< "$completion"
        if [[ $type == 'dir' ]]; then
            COMPREPLY=()
            compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            COMPREPLY=()
            compopt -o default
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=("$value")
            [[ $value == *= ]] && compopt -o nospace
        fi
    done
    return 0
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor's, and the incomplete one."""
        import os

        from click.shell_completion import split_arg_string

        line = os.environ.get("COMP_LINE")
        if line is None:
            return super().get_completion_args()
        words = split_arg_string(line)
        incomplete = words.pop() if words and not line[-1].isspace() else ""
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """Without what bash takes for earlier words: `tensorrt==1` is completed by `0`, not by `tensorrt==10`."""
        import os

        if "COMP_LINE" not in os.environ or item.type != "plain":
            return super().format_completion(item)
        _, incomplete = self.get_completion_args()
        breaks = os.environ.get("COMP_WORDBREAKS", "=:")
        cut = max((incomplete.rfind(c) + 1 for c in breaks if c in "=:"), default=0)
        return f"{item.type},{item.value[cut:]}"


def register() -> None:
    """Make click answer bash in this way."""
    add_completion_class(WholeWordBash)
