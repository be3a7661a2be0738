"""Put a Markdown file under a pull request of GitHub, as one comment that later runs replace.

The action calls it: `python ci/comment.py REPORT.md TOPIC`. It needs nothing but the standard library, and the
variables of a workflow: GITHUB_TOKEN, GITHUB_REPOSITORY, GITHUB_EVENT_PATH and GITHUB_API_URL. A token that may not
write, as in pull requests from forks, is a warning and no failure: the verdict is that of the check.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

# GitHub refuses a longer comment.
MOST_CHARACTERS = 65_000
PER_PAGE = 100
TIMEOUT_S = 30


def main(words: list[str], environment: Mapping[str, str]) -> int:
    """Update or add the comment; always 0, since what it could not do is told as a warning."""
    report, topic = words
    number = pull_request_number(environment)
    if not number:
        print("no pull request: no comment")
        return 0
    if not Path(report).is_file():
        print(f"::warning title=trtconv::no comment: '{report}' was not written")
        return 0
    mark = marker(topic)
    body = f"{mark}\n{Path(report).read_text(encoding='utf-8')}"[:MOST_CHARACTERS]
    try:
        print(put_comment(environment, number, mark, body))
    except (urllib.error.URLError, TimeoutError, ValueError) as error:
        print(f"::warning title=trtconv::the comment could not be written: {error}")
    return 0


def pull_request_number(environment: Mapping[str, str]) -> int:
    """The number of the pull request that the workflow runs for; 0 for a push."""
    try:
        event = json.loads(Path(environment.get("GITHUB_EVENT_PATH", "")).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0
    return int((event.get("pull_request") or {}).get("number", 0))


def marker(topic: str) -> str:
    """An invisible line by which a later run knows its comment; each topic of a pull request has one of its own."""
    return f"<!-- trtconv {hashlib.sha256(topic.encode()).hexdigest()[:16]} -->"


def put_comment(environment: Mapping[str, str], number: int, mark: str, body: str) -> str:
    """Replace the comment that begins with `mark`, else add one; returns what was done."""
    repository = f"{environment['GITHUB_API_URL']}/repos/{environment['GITHUB_REPOSITORY']}"
    mine = next((c for c in _comments(environment, repository, number) if str(c["body"]).startswith(mark)), None)
    if mine is None:
        _ask(environment, "POST", f"{repository}/issues/{number}/comments", {"body": body})
        return "comment added"
    _ask(environment, "PATCH", f"{repository}/issues/comments/{mine['id']}", {"body": body})
    return "comment updated"


def _comments(environment: Mapping[str, str], repository: str, number: int) -> Iterator[dict[str, Any]]:
    page = 1
    while True:
        address = f"{repository}/issues/{number}/comments?per_page={PER_PAGE}&page={page}"
        comments = _ask(environment, "GET", address)
        yield from comments
        if len(comments) < PER_PAGE:
            return
        page += 1


def _ask(environment: Mapping[str, str], method: str, address: str, data: Mapping[str, str] | None = None) -> Any:
    if not address.startswith(("https://", "http://127.0.0.1:")):
        raise ValueError(f"'{address}' is no https address")
    headers = {"Authorization": f"Bearer {environment.get('GITHUB_TOKEN', '')}", "Accept": "application/json"}
    request = urllib.request.Request(
        address, None if data is None else json.dumps(data).encode(), headers, method=method
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        return json.load(answer)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
