"""Exporting loops over sizes: the parts that loop are scripted, so that the file holds the loop and no run of it."""

from trtconv.export.exporters.scripted.export import export_scripted

__all__ = ["export_scripted"]
