"""`ci/comment.py` against a server of this machine that answers as GitHub's API does."""

import importlib.util
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location("comment", Path(__file__).parents[1] / "ci" / "comment.py")
comment = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(comment)


class Handler(BaseHTTPRequestHandler):
    """Comments of one pull request, in pages; a token that is not `good` may read only."""

    def do_GET(self):
        page = int(self.path.rpartition("page=")[2])
        self.answer(200, self.server.comments[100 * (page - 1) : 100 * page])

    def do_POST(self):
        self.write(lambda body: self.server.comments.append({"id": len(self.server.comments) + 1, "body": body}))

    def do_PATCH(self):
        number = int(self.path.rpartition("/")[2])
        self.write(lambda body: self.server.comments[number - 1].update(body=body))

    def write(self, change):
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != "Bearer good":
            self.answer(403, {"message": "Resource not accessible by integration"})
            return
        change(data["body"])
        self.answer(200, {})

    def answer(self, code, data):
        self.server.paths.append(self.path.partition("?")[0])
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(data).encode())

    def log_message(self, *words):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.comments, server.paths = [], []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def environment(server, tmp_path):
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
    return {
        "GITHUB_API_URL": f"http://127.0.0.1:{server.server_port}",
        "GITHUB_REPOSITORY": "me/mine",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_TOKEN": "good",
    }


def put(environment, tmp_path, text, topic="out/model.engine"):
    (tmp_path / "report.md").write_text(text)
    return comment.main([str(tmp_path / "report.md"), topic], environment)


def test_the_first_run_adds_and_later_runs_replace(server, environment, tmp_path, capsys):
    server.comments = [{"id": i + 1, "body": "of somebody else"} for i in range(150)]
    assert put(environment, tmp_path, "### ✅ equal") == 0
    assert put(environment, tmp_path, "### ❌ differs") == 0
    assert capsys.readouterr().out == "comment added\ncomment updated\n"
    assert len(server.comments) == 151
    assert server.comments[150]["body"].endswith("### ❌ differs")
    assert {path.split("/issues/")[0] for path in server.paths} == {"/repos/me/mine"}


def test_each_topic_has_its_comment(server, environment, tmp_path):
    for text in ("first", "second"):
        for topic in ("a.engine", "b.engine"):
            put(environment, tmp_path, f"{text} {topic}", topic)
    assert [c["body"].splitlines()[1] for c in server.comments] == ["second a.engine", "second b.engine"]


def test_a_token_that_may_not_write_is_a_warning(server, environment, tmp_path, capsys):
    assert put(environment | {"GITHUB_TOKEN": "read"}, tmp_path, "text") == 0
    assert "::warning" in capsys.readouterr().out
    assert server.comments == []


def test_a_long_report_is_cut(server, environment, tmp_path):
    put(environment, tmp_path, "x" * 100_000)
    assert len(server.comments[0]["body"]) == comment.MOST_CHARACTERS


def test_a_push_and_a_check_without_a_report_have_no_comment(server, environment, tmp_path, capsys):
    (tmp_path / "event.json").write_text("{}")
    assert put(environment, tmp_path, "text") == 0
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
    assert comment.main([str(tmp_path / "none.md"), "x"], environment) == 0
    assert (server.paths, "no comment" in capsys.readouterr().out) == ([], True)


def test_the_token_is_sent_nowhere_but_over_https(environment, tmp_path, capsys):
    assert put(environment | {"GITHUB_API_URL": "http://example.com"}, tmp_path, "text") == 0
    assert "is no https address" in capsys.readouterr().out
