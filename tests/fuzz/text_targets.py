"""Targets that take one text: the grammars of the command line and of the config, and what torch would evaluate."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from tests.fuzz.strategies import changed_bytes, texts
from tests.fuzz.target import Finding, Target, audited
from trtconv.core.config import read_config
from trtconv.core.shape_space.space import parse_range, parse_space
from trtconv.core.sizes import parse_bytes
from trtconv.core.targets import parse_target
from trtconv.core.tensors import parse_tensor
from trtconv.core.text.display import display_text
from trtconv.core.text.numbers import parse_number
from trtconv.core.tolerance import Tolerance
from trtconv.export.program.expression import require_expression
from trtconv.export.program.operators import require_operator
from trtconv.export.program.treespec import require_treespec

CONFIG = """
[model]
module = "net.py:make_net"
args = { width = 4 }
weights = "w.safetensors"
[[input]]
name = "images"
dtype = "float32"
shape = ["N", 3, "H", "W"]
range = [0.0, 1.0]
[dynamic]
N = 4
H = "320:640:1280%32"
[export]
exporter = "auto"
opset = 18
[rewrite]
target = "tensorrt==10"
only = ["l2norm"]
[build]
precision = "fp16"
profiles = ["N=1:1:1 H=320:640:1280%32"]
workspace = "4GiB"
opt_level = 3
options = { tf32 = true }
[check]
rtol = 1e-3
why = "because"
[check.outputs.y]
atol = 1e-3
cosine = 0.99
why = "because"
[check.budgets]
latency_ms = 5
[check.baseline]
latency_ms = 1.2
"""
EXPRESSIONS = (
    "s0", "Symbol('s0', positive=True, integer=True)", "Add(Symbol('s0', integer=True), Integer(1))", "2*s0 + 1",
    "FloorDiv(s0, 2)", "Max(1, s0)", "Float('0.5', precision=53)", "Pow(s0, Integer(2))", "Eq(s0, 1)", "s0**-1",
    "__import__('os').system('true')", "().__class__.__bases__", "[x for x in ()]", "lambda: 0", "s0.conjugate()",
    "Function('system')('true')", "eval('1')", "f'{s0}'", "9**9**9", "Integer(10)**Integer(20)", "open('x','w')",
)  # fmt: skip
OPERATORS = (
    "torch.ops.aten.add.Tensor", "torch.ops.higher_order.cond", "_operator.add", "torch.os.system", "torch.sym_int",
    "torch.ops.aten.add.Tensor.__call__", "torch._C._jit_eval", "builtins.eval", "math.ceil",
)  # fmt: skip
TREES = (
    '[1, {"type": "builtins.tuple", "context": "null", "children_spec": []}]',
    '[1, {"type": "builtins.dict", "context": "[\\"x\\"]", "children_spec": [{"type": null, "context": null, '
    '"children_spec": []}]}]',
    '[1, {"type": "os.system", "context": "x", "children_spec": []}]',
)


def _space(text: str, _: Path) -> None:
    space = parse_space([text])
    if str(parse_space([str(space)])) != str(space):
        raise Finding("a space that is not written as it is read")


def _tensor(text: str, _: Path) -> None:
    spec = parse_tensor(text)
    if parse_tensor(str(spec)) != type(spec)(spec.name, spec.dtype, spec.dims, spec.value_range):
        raise Finding(f"an input that is not written as it is read: {spec}")


def _tolerance(text: str, _: Path) -> None:
    number = parse_number(text, "--rtol", 0.0, 1e30)
    Tolerance(number, number)


def _target(text: str, _: Path) -> None:
    target = parse_target(text)
    _ = target.facts, target.generation


def _config(data: bytes, folder: Path) -> None:
    path = folder / "trtconv.toml"
    path.write_bytes(data)
    read_config(path)


def _display(text: str, _: Path) -> None:
    printed = display_text(text)
    if any(ord(c) < 32 and c not in "\n\t" for c in printed) or any(c in printed for c in "\x7f\x9b\u202e\ufffe"):
        raise Finding("a control character that is shown")
    if any(line.lstrip().startswith("::") for line in printed.split("\n")):
        raise Finding("a command for CI that is shown")


def _expression(text: str, _: Path) -> None:
    """What the grammar takes is evaluated as torch would, while nothing but arithmetic may happen."""
    require_expression(text)
    import sympy

    with audited() as events:
        try:
            sympy.sympify(text, locals={"FloorDiv": sympy.Function("FloorDiv")})
        # Whatever sympy raises: only what it runs is looked at here, and torch turns these into one error.
        except Exception:
            return
    if events:
        raise Finding(f"an accepted expression did {events}")


TARGETS = (
    Target("dynamic", texts("N=1:4:16", "H=320:640:1280%32 W=8", "batch=4"), _space),
    Target("range", texts("1:4:16", "320:640:1280%32", "7"), lambda text, _: parse_range(text)),
    Target("input", texts("images:float32[N,3,H,W]", "x=ids:int64[N,T]=0:100", "s[]", "a:bool[2]"), _tensor),
    Target("size", texts("4GiB", "512MiB", "1e9", "1.5 kb"), lambda text, _: parse_bytes(text)),
    Target("tolerance", texts("1e-3", "0.5", "inf", "-0"), _tolerance),
    Target("target", texts("tensorrt==10.8", "tensorrt-rtx==1.7.1", "tensorrt==8.6", "tensorrt"), _target),
    Target("config", st.one_of(changed_bytes(st.just(CONFIG.encode())), texts(*CONFIG.splitlines()).map(
        lambda t: t.encode("utf-8", "surrogatepass"))), _config),
    Target("display", texts("::error::x", "\x1b[31m", "##[group]", "a\u202eb", "  ::x", "\x9b1m"), _display),
    Target("expression", texts(*EXPRESSIONS), _expression, (ValueError,)),
    Target("operator", texts(*OPERATORS), lambda text, _: require_operator(text), (ValueError,)),
    Target("treespec", texts(*TREES), lambda text, _: require_treespec(text), (ValueError,)),
)  # fmt: skip
