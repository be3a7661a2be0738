"""Reports of every kind, for the tests of the reporters."""

from trtconv.core.report import CheckReport, Finding, OutputComparison
from trtconv.core.tolerance import Tolerance


def comparison(output="y", point="opt (N=2 W=8)", passed=True, **over):
    values = {
        "reason": "" if passed else "16 of 16 elements differ by more than the tolerance", "expected_shape": (2, 8),
        "actual_shape": (2, 8), "max_abs": 0.0 if passed else 0.5, "max_rel": 0.0 if passed else 0.25, "cosine": 1.0,
        "mismatched": 0.0 if passed else 1.0, "at": (0, 1), "expected_at": 2.0, "actual_at": 2.0 if passed else 2.5,
        "max_scaled": 0.0 if passed else 0.17,
    }  # fmt: skip
    return OutputComparison(output, point, passed, **(values | over))


def report(*comparisons, findings=(), **over):
    values = {
        "subject": "out/model.trt.onnx", "subject_kind": "onnx", "reference": "out/model.reference.safetensors",
        "runner": "onnxruntime 1.31 on the CPU", "tolerance": Tolerance(), "comparisons": tuple(comparisons),
        "findings": tuple(findings), "seconds": 1.25, "environment": {"trtconv": "0.1.0", "python": "3.11"},
        "original": "the module",
    }  # fmt: skip
    return CheckReport(**(values | over))


GOOD = report(comparison(), comparison(point="min (N=1 W=3)"), advisory=(comparison(point="nan (N=1 W=3, nan)"),))
BAD = report(
    comparison(passed=False), comparison(point="min (N=1 W=3)"),
    comparison("z", "max (N=4 W=17)", False, reason="shape [4, 8], expected [4, 17]", expected_shape=(4, 17),
               actual_shape=(4, 8), max_abs=None, max_rel=None, cosine=None, mismatched=None, at=(), expected_at=None,
               actual_at=None, max_scaled=None),
    comparison("w", "large (N=1 W=3, large)", False, max_abs=float("inf"), actual_at=float("nan")),
    findings=(
        Finding("error", "accuracy", "values first differ at 'Mul_3', made by rule l2norm", "skip it: --skip l2norm",
                "Mul_3", "backbone.norm", "nets/ssd.py:42"),
        Finding("error", "budget", "engine_bytes is 12 MiB, the limit is 10 MiB", "raise it or shrink the model"),
        Finding("warning", "usage", "a | pipe, a <tag> & a `tick`\nand a line"),
        Finding("note", "environment", "the engine was not run here"),
    ),
    extras={"origins": {"y": {"node": "Mul_3", "module": "head", "source": "nets/ssd.py:77"}},
            "budgets": [{"name": "engine_bytes", "measured": "12 MiB", "limit": "10 MiB", "passed": False,
                         "value": 12.0, "bound": 10.0}]},
)  # fmt: skip
EMPTY = report(findings=(Finding("error", "environment", "needs a GPU", "get one"),), runner="none")
NOTED = report(findings=(Finding("note", "environment", "needs a GPU"),), runner="none")
STATIC = report(runner="the tables, for tensorrt==8.6", static=True)
REFUSED = report(
    runner="the tables, for tensorrt==8.6",
    static=True,
    findings=(Finding("error", "unsupported", "Col2Im is refused", "rewrite it", "/fold", "head", "net.py:7"),),
)
ALL = {"good": GOOD, "bad": BAD, "empty": EMPTY, "noted": NOTED, "static": STATIC, "refused": REFUSED}
