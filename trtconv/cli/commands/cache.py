"""`trtconv cache`: the engines that `build` and `convert` answer from."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from trtconv.cli.click_options import GroupedOption, options_of
from trtconv.cli.echo import echo
from trtconv.cli.files import FileCommand
from trtconv.cli.options import JsonOption
from trtconv.frontend.command_line import CommandLine

if TYPE_CHECKING:
    from trtconv.build.cache.store import EngineCache, RejectedEntry


@click.group("cache")
def command() -> None:
    """List, verify and remove cached engines. TRTCONV_CACHE names another folder, or `off`.

    The folder carries a marker, and only entries of the cache's own form are ever removed from it.
    """


@command.command("ls", cls=FileCommand)
@options_of(JsonOption)
def list_entries(line: CommandLine) -> None:
    """List the cached engines, last used first."""
    from trtconv.cli.show import write_document
    from trtconv.core.sizes import format_bytes

    cache = _cache()
    survey = cache.survey()
    entries = survey.entries
    rows = [{"key": e.key, "engine_bytes": e.engine_bytes, "used": e.used, "parts": e.parts} for e in entries]
    facts = {"root": cache.root, "limit_bytes": cache.limit, "entries": rows, **_others(survey.skipped)}
    if write_document(line.of(JsonOption).file, "cache-ls", facts):
        return
    for entry in entries:
        models = ", ".join(_names(entry.parts.get("model")))
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        built_by = f"{entry.parts.get('backend', '')} {entry.parts.get('gpu', '')}".strip()
        size = format_bytes(entry.engine_bytes)
        echo(f"{entry.key[:12]}  {size:>10}  {used}  {built_by}  {models}")
    total = sum(e.engine_bytes for e in entries)
    echo(f"{len(entries)} engines, {format_bytes(total)} of at most {format_bytes(cache.limit)} in {cache.root}")
    _tell_left_alone(survey.skipped)


@command.command("rm", cls=FileCommand)
@click.argument("keys", nargs=-1)
@click.option(
    "--all", "everything", cls=GroupedOption, group="Cache", example="--all", is_flag=True, help="Remove every engine."
)
@options_of(JsonOption)
def remove(keys: tuple[str, ...], everything: bool, line: CommandLine) -> None:
    """Remove the engines whose keys begin with KEYS."""
    from trtconv.cli.show import write_document

    if not keys and not everything:
        raise click.UsageError("name the begin of a key (`trtconv cache ls` lists them), or --all")
    cache = _cache()
    entries = cache.entries() if everything else tuple(cache.find(k) for k in keys)
    removed = [entry.key for entry in entries if cache.remove(entry.key)]
    others = cache.survey().skipped
    if write_document(line.of(JsonOption).file, "cache-rm", {"removed": removed, **_others(others)}):
        return
    echo(f"removed {len(removed)} engines")
    _tell_left_alone(others)


@command.command("verify", cls=FileCommand)
@options_of(JsonOption)
def verify(line: CommandLine) -> int:
    """Compare every engine with its hash, and remove what is damaged (exit code 1, as for malformed entries)."""
    from trtconv.cli.show import write_document

    report = _cache().verify()
    damaged = [{"key": entry.key, "reason": reason} for entry, reason in report.damaged]
    facts = {"passed": report.passed, "whole": [e.key for e in report.whole], "damaged": damaged}
    if write_document(line.of(JsonOption).file, "cache-verify", {**facts, **_others(report.skipped)}):
        return 0 if report.passed else 1
    for entry, reason in report.damaged:
        echo(f"{entry.key[:12]}  damaged, removed: {reason}")
    echo(f"{len(report.whole)} of {len(report.whole) + len(report.damaged)} engines are whole")
    _tell_left_alone(report.skipped)
    return 0 if report.passed else 1


@command.command("prune", cls=FileCommand)
@options_of(JsonOption)
def prune(line: CommandLine) -> None:
    """Evict down to the limit, and remove what killed writers left (after an hour) and damaged entries (a week)."""
    from trtconv.cli.show import write_document

    report = _cache().prune()
    if write_document(line.of(JsonOption).file, "cache-prune", {"removed": report.removed, **_others(report.skipped)}):
        return
    echo(f"removed {len(report.removed)} folders")
    _tell_left_alone(report.skipped)


def _tell_left_alone(others: Iterable[RejectedEntry]) -> None:
    for other in others:
        echo(f"left alone: {other.name} ({other.reason})")


def _others(skipped: Iterable[RejectedEntry]) -> dict[str, Any]:
    """What is in the folder and no entry, for JSON."""
    return {"skipped": [{"name": other.name, "reason": other.reason} for other in skipped]}


def _names(value: object) -> list[str]:
    return [str(name) for name in value] if isinstance(value, dict) else []


def _cache() -> EngineCache:
    from trtconv.build.cache.store import user_cache
    from trtconv.core.errors import InvalidRequestError

    cache = user_cache()
    if cache is None:
        raise InvalidRequestError("the engine cache is off", hint="unset TRTCONV_CACHE, or name a folder with it")
    return cache
