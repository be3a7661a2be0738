"""Files that forward reads and writes: what a call leaves in one is refused by name, anything else is noted."""

from __future__ import annotations

import pytest

from trtconv.core.errors import AccuracyError, TrtconvError
from trtconv.export.lasting.files import FilesUsed, blaming_tables_in_files
from trtconv.export.sizes.whole_numbers import BeyondIntegersError

HEAD = """import os, tempfile
import numpy as np

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.path = os.path.join(tempfile.mkdtemp(), "kept")

    def forward(self, x):
"""
KEPT = {
    "text": """
        if not os.path.exists(self.path):
            with open(self.path, "w") as file:
                file.write(str(x.shape[1]))
        with open(self.path) as file:
            return x * int(file.read())
""",
    # torch.save writes without Python, and no hook hears of it.
    "a tensor of torch": """
        if not os.path.exists(self.path):
            torch.save(torch.tensor(x.shape[1] * 1.0), self.path)
        return x * torch.load(self.path)
""",
    # Nothing is read: that the file is there says that a call was before.
    "that it is there": """
        if os.path.exists(self.path):
            return x
        open(self.path, "w").close()
        return x * 2
""",
}


@pytest.mark.parametrize("body", KEPT.values(), ids=list(KEPT))
def test_what_a_call_keeps_in_a_file_is_refused(write_module, export, body):
    path = write_module(HEAD + body)
    message = r"forward (reads|looks for) 'kept.*', which it has written in a call before"
    with pytest.raises(AccuracyError, match=message) as caught:
        export(f"{path}:Net", ["x:float32[2,T]"], "T=2:5:9")
    assert caught.value.where.startswith("net.py:")


TABLE = HEAD + """
        path = f"{self.path}{x.shape[1]}.npy"
        if not os.path.exists(path):
            np.save(path, np.linspace(0, 1, x.shape[1], dtype=np.float32))
        return x + torch.from_numpy(np.load(path))
"""


def test_tables_in_a_file_for_each_size_convert_or_are_the_cause(write_module, export):
    path = write_module(TABLE)
    result = export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=2:3:4")
    assert any(n.startswith("forward reads 'kept") for n in result.notes)
    path.write_text(path.read_text().replace("np.load(path)", "np.load(path)[:]").replace("+ torch", "* 1j + torch"))
    with pytest.raises(TrtconvError) as caught:
        export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=2:5:9")
    assert "no exporter follows what goes through a file" in caught.value.message


def test_an_error_of_any_class_keeps_it(tmp_path):
    used = FilesUsed()
    path = str(tmp_path / "kept.npy")
    used.read[path] = used.written[path] = None
    blaming = blaming_tables_in_files(used, tmp_path)
    with pytest.raises(BeyondIntegersError, match=r"forward reads 'kept\.npy'") as caught, blaming:
        raise BeyondIntegersError(1 << 70)
    assert caught.value.details[0].startswith("a whole number goes beyond what a file holds")


def test_a_file_that_is_only_read_or_written_is_noted(write_module, export):
    path = write_module("""import os, tempfile
import numpy as np

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.folder = tempfile.mkdtemp()
        np.save(f"{self.folder}/scales.npy", np.arange(1.0, 5.0, dtype=np.float32))

    def forward(self, x):
        with open(f"{self.folder}/log.txt", "a") as file:
            file.write("called\\n")
        return x * torch.from_numpy(np.load(f"{self.folder}/scales.npy"))
""")
    notes = export(f"{path}:Net", ["x:float32[N,4]"], "N=1:2:3").notes
    assert "forward reads 'scales.npy' (net.py:17): the exported file has what was there at its export" in notes
    assert "forward writes 'log.txt' (net.py:15): the exported file does not" in notes
