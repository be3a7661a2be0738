"""Reports from one result object: for the terminal and for machines."""

from trtconv.check.reporters.text import print_report
from trtconv.check.reporters.writing import write_reports

__all__ = ["print_report", "write_reports"]
