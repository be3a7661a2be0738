"""Forms of Python that torch.jit.script does not take, written in those that it takes."""
