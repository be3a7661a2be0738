"""The content security policy of a page: nothing is fetched, and no script runs but those that trtconv put there.

A script is allowed by the SHA-256 of its text (https://www.w3.org/TR/CSP3/#script-src), so that one that came out of a
model through a fault in the escaping would not run. Styles stay inline: the bars carry their widths.
"""

from __future__ import annotations

import base64
import hashlib


def security_policy(*scripts: str) -> str:
    """The policy for a page with exactly these texts in its script elements."""
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    sources = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    return (
        f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
