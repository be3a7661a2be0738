"""The files of a repro: a folder, or the same as a zip."""

from __future__ import annotations

import json
import platform
import shutil
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.check.repro.cutting import input_specs
from trtconv.check.repro.failures import BuildFailure, CutFailure, Failure
from trtconv.core.artifacts import replacing, require_writable
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.digest import sha256_file
from trtconv.core.files.output_paths import require_distinct
from trtconv.core.model.file import save_model, set_metadata
from trtconv.core.model.provenance import REFERENCE_KEY
from trtconv.core.precision import FP32
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.proof.points import SamplePoint
from trtconv.proof.reference import ReferenceInfo, ReferenceSample, write_reference

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

PACKAGES = ("trtconv", "onnx", "onnxruntime", "numpy", "torch", "tensorrt", "tensorrt-rtx-cu13")


FILES = ("repro.onnx", "repro.reference.safetensors", "inputs.npz", "expected.npz", "versions.json", "README.md")


def require_repro_output(output: Path, read: Sequence[Path]) -> None:
    """Raise InvalidRequestError if a repro would replace an input, or a file that is not part of a repro."""
    if output.suffix == ".zip":
        require_writable(output)
        require_distinct((output,), read)
        return
    if output.exists() and not output.is_dir():
        raise InvalidRequestError(f"the output '{output}' is a file", hint="name a folder, or a file ending in .zip")
    require_distinct([output / name for name in FILES], read)
    old = [name for name in FILES if (output / name).exists()]
    if old and "repro.onnx" not in old:
        raise InvalidRequestError(f"'{output / old[0]}' exists and is not part of a repro", hint="name another folder")


def write_repro(output: Path, smallest: CutFailure, source: Path) -> Path:
    """Write `repro.onnx`, its reference, the arrays as `.npz`, versions and a README; returns the folder or zip."""
    zipped = output.suffix == ".zip"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "repro")
        folder.mkdir()
        _fill(folder, smallest, source)
        if not zipped:
            output.mkdir(parents=True, exist_ok=True)
            for file in sorted(folder.iterdir()):
                with replacing(output / file.name) as temporary_file:
                    shutil.copyfile(file, temporary_file)
            return output
        packed = shutil.make_archive(str(Path(temporary, "packed")), "zip", temporary, "repro")
        with replacing(output) as temporary_file:
            shutil.copyfile(packed, temporary_file)
    return output


def _fill(folder: Path, smallest: CutFailure, source: Path) -> None:
    import numpy as np

    model, inputs, expected = smallest.model, smallest.inputs, smallest.expected
    np.savez(folder / "inputs.npz", **{k: np.asarray(v) for k, v in inputs.items()})  # type: ignore[arg-type]
    np.savez(folder / "expected.npz", **{k: np.asarray(v) for k, v in expected.items()})  # type: ignore[arg-type]
    point = SamplePoint("cut", ())
    info = ReferenceInfo((point,), input_specs(model), tuple(expected), ShapeSpace(), source.name)
    reference = folder / "repro.reference.safetensors"
    write_reference(reference, info, [ReferenceSample(point, inputs, expected)])
    set_metadata(model, REFERENCE_KEY, sha256_file(reference))
    save_model(model, folder / "repro.onnx")
    (folder / "versions.json").write_text(json.dumps(versions(), indent=1) + "\n")
    (folder / "README.md").write_text(_readme(model, smallest.failure, smallest.reason, source))


def versions() -> dict[str, str]:
    """Versions of the installed packages that may matter."""
    installed = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    for name in PACKAGES:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    from trtconv.backends.cuda.driver import probe_cuda

    state = probe_cuda()
    if state.gpus:
        installed |= {"gpu": state.gpus[0].name, "driver": state.driver}
    return installed


def command_of(failure: Failure) -> str:
    """The command that shows the failure in the folder."""
    if not isinstance(failure, BuildFailure):
        return "trtconv check repro.onnx --reference repro.reference.safetensors"
    options = [f"--backend {failure.backend}"] if failure.backend != "auto" else []
    options += [f"--precision {failure.precision}"] if failure.precision != FP32.name else []
    if failure.profile:
        ranges = {}
        for low, opt, high in failure.profile.values():
            for a, b, c in zip(low, opt, high, strict=True):
                if a != c:
                    ranges[f"d{a}_{c}"] = f"{a}:{b}:{c}"
        options.append("--dynamic " + " ".join(f"{n}={r}" for n, r in ranges.items()))
    build = " ".join(["trtconv build repro.onnx -o repro.engine", *options])
    return build if failure.tolerance is None else f"{build}\ntrtconv check repro.engine"


def _readme(model: onnx.ModelProto, failure: Failure, reason: str, source: Path) -> str:
    many = len(model.graph.node) != 1
    count, verb = (f"{len(model.graph.node)} nodes", "are") if many else ("One node", "is")
    ops = ", ".join(dict.fromkeys(n.op_type for n in model.graph.node))
    places = dict.fromkeys(p.value for n in model.graph.node for p in n.metadata_props if p.key == "trtconv.source")
    origin = f"\nThe nodes come from {', '.join(places)}.\n" if places else ""
    return f"""# A failing part of {source.name}

Kind: {failure.kind}

{count} ({ops}) {verb} enough to show it:

    {reason}
{origin}
Run it:

```
{command_of(failure)}
```

`inputs.npz` and `expected.npz` hold the arrays by name; `versions.json` says with what this was made. The file has
only the weights of these nodes.
"""
