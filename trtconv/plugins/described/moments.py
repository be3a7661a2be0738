"""The normalisation that the bodies of several plugins share."""

from __future__ import annotations


def normalised(values: str, axes: str) -> str:
    """ONNX text that gives `unit`: float32 `values` less their mean over `axes`, divided by their deviation.

    `count` has to be how many values there are, as a float32. The mean comes first and then the squared differences, as
    sums: ReduceMean takes its axes as an input from opset 18 on, ReduceSum from 13 on.
    """
    return f"""
      total = ReduceSum <keepdims = 1> ({values}, {axes})
      mean = Div (total, count)
      centred = Sub ({values}, mean)
      squared = Mul (centred, centred)
      squares = ReduceSum <keepdims = 1> (squared, {axes})
      variance = Div (squares, count)
      eps = Constant <value_float: float = @epsilon> ()
      above = Add (variance, eps)
      deviation = Sqrt (above)
      unit = Div (centred, deviation)"""
