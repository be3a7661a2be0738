"""Numbers in coloured cells can be read in both schemes: WCAG 2.1 asks for a contrast of 4.5 (criterion 1.4.3)."""

import re
from pathlib import Path

import pytest

import trtconv.check.reporters.html as pages

STYLE = (Path(pages.__file__).parent / "report.css").read_text()
LEAST = 4.5


def luminance(colour: str) -> float:
    digits = colour.removeprefix("#")
    digits = digits if len(digits) == 6 else "".join(2 * d for d in digits)
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def colours(dark: bool) -> dict[str, str]:
    light, _, rest = STYLE.partition("@media (prefers-color-scheme: dark)")
    text = light + (rest.split("}", 1)[0] if dark else "")
    return dict(re.findall(r"--(\w+): (#\w+)", text))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("level", range(6))
def test_the_number_in_a_cell_stands_out(level, dark):
    own = re.search(rf"\.l{level} {{ background: var\(--h{level}\);(?: color: (#\w+);)? }}", STYLE)
    chosen = colours(dark)
    assert contrast(own[1] or chosen["text"], chosen[f"h{level}"]) >= LEAST


def test_contrast_is_that_of_the_standard():
    assert contrast("#fff", "#000000") == pytest.approx(21)
    assert contrast("#ffffff", "#3a7ed0") == pytest.approx(4.14, abs=0.01)
