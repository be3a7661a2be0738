"""How an error tells what each way of exporting came to."""

from trtconv.export.exporters.attempt import Attempt, Way, describe_attempts


def _failed(exporter, text, **flags):
    return Attempt(Way(exporter, export=None, **flags), error=RuntimeError(text))


def test_ways_that_fail_by_one_cause_share_a_line():
    attempts = [_failed("dynamo", "no sine"), _failed("torchscript", "no roll")]
    attempts += [_failed("dynamo", "no sine", splits=True), _failed("dynamo", "no sine", symbolic=True)]
    assert describe_attempts(attempts) == [
        "dynamo and 2 other ways: could not export: RuntimeError: no sine",
        "torchscript: could not export: RuntimeError: no roll",
    ]


def test_two_ways_are_both_named():
    lines = describe_attempts([_failed("dynamo", "no sine"), _failed("torchscript", "no sine")])
    assert lines == ["dynamo, torchscript: could not export: RuntimeError: no sine"]
