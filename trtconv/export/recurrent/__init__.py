"""Recurrent layers: as one operator in traces and modes, and as inexact as others compute them."""
