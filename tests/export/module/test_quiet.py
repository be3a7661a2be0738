"""What is kept off the terminal, and what a handler must not be put on."""

import logging

import torch

from trtconv.export.module.quiet import STRUCTURED, collected_noise


def test_warnings_of_torch_are_kept():
    with collected_noise() as noise:
        logging.getLogger("torch.export").warning("a warning\nof two lines")
    assert noise.lines == ["a warning"]


def test_torch_writes_no_record_of_each_guard():
    """A handler on that logger makes torch write every guard and graph of a trace as JSON."""
    before = list(logging.getLogger(STRUCTURED).handlers)
    assert STRUCTURED in logging.root.manager.loggerDict
    with collected_noise():
        assert logging.getLogger(STRUCTURED).handlers == before
        torch.export.export(torch.nn.Linear(2, 2), (torch.rand(1, 2),))
        assert len(logging.getLogger(STRUCTURED).handlers) <= len(before)
