"""What depends on which tensors hold the inputs, and not on their values, is told."""

import pytest

HEAD = "import weakref\n\n"
EARLIER, STRIDED, ONE = "with the tensors of an earlier call", "inputs that are not contiguous", "with one tensor for"
NOTED = {
    "a weak reference to the last input": (
        "self.last = None",
        "last = self.last() if self.last else None\n"
        "        self.last = weakref.ref(x)\n"
        "        return x * 2 + y if last is None else x * 2 + y + last",
        EARLIER,
    ),
    "a weak reference to the last output": (
        "self.last = lambda: None",
        "last, out = self.last(), x * 2 + y\n"
        "        self.last = weakref.ref(out)\n"
        "        return out if last is None else out + last * 0.5",
        EARLIER,
    ),
    "a table by id": (
        "self.seen = weakref.WeakValueDictionary()",
        "again = self.seen.get(id(x)) is x\n        self.seen[id(x)] = x\n"
        "        return (x + y) * (0.5 if again else 1.0)",
        EARLIER,
    ),
    "an attribute of the input": (
        "pass",
        "if getattr(x, 'normed', False):\n            return x + y\n        x.normed = True\n        return x * 2 + y",
        EARLIER,
    ),
    "features of the last input": (
        "self.key = self.value = None",
        "if self.key is not x:\n            self.key, self.value = x, x.cumsum(1)\n        return self.value * y",
        EARLIER,
    ),
    "a question for contiguity": ("pass", "return x + y if x.is_contiguous() else x - y", STRIDED),
    "frames by strides": ("pass", "return x.as_strided(y.shape, (4, 1)) + y", STRIDED),
    "a question whether two are one": ("pass", "return x * 2 + y if x is y else x - y", ONE),
    "a write into one of them": ("pass", "x.add_(1)\n        return x * y", ONE),
}
SILENT = {
    "what keeps its last output to be looked at": (
        "self.last = None",
        "self.last = x + y\n        return self.last * 2",
    ),
    "what asks whether two are one for speed alone": (
        "self.layer = nn.Linear(4, 8)",
        "w, b = self.layer.weight, self.layer.bias\n"
        "        if x is y:\n"
        "            one, two = nn.functional.linear(x, w, b).chunk(2, 1)\n"
        "            return one * two\n"
        "        return nn.functional.linear(x, w[:4], b[:4]) * nn.functional.linear(y, w[4:], b[4:])",
    ),
    "what raises for one that is not contiguous": ("pass", "return x.view(-1).view(y.shape) + y"),
    "a write into the input alone": ("pass", "x.mul_(2)\n        return x.clone()"),
}


def _export(write_module, export, first, body):
    path = write_module(
        f"{HEAD}class Net(nn.Module):\n"
        f"    def __init__(self):\n        super().__init__()\n        {first}\n\n"
        f"    def forward(self, x, y):\n        {body}\n"
    )
    return export(f"{path}:Net", ["x:float32[N,4]=-2:2", "y:float32[N,4]=-2:2"], "N=2:3:5")


@pytest.mark.parametrize("name", NOTED)
def test_what_depends_on_the_tensors_is_told(name, write_module, export):
    *code, text = NOTED[name]
    notes = _export(write_module, export, *code).notes
    assert any(text in note for note in notes), notes


@pytest.mark.parametrize("name", SILENT)
def test_what_depends_on_values_is_not_told(name, write_module, export):
    notes = _export(write_module, export, *SILENT[name]).notes
    assert not any(text in note for note in notes for text in (EARLIER, STRIDED, ONE)), notes
