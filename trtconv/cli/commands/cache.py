"""`trtconv cache`: the engines that `build` and `convert` answer from."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from trtconv.cli.echo import echo

if TYPE_CHECKING:
    from trtconv.build.cache.store import EngineCache, LeftAlone


@click.group("cache")
def command() -> None:
    """List, verify and remove cached engines. TRTCONV_CACHE names another folder, or `off`.

    The folder carries a marker, and only entries of the cache's own form are ever removed from it.
    """


@command.command("ls")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_entries(as_json: bool) -> None:
    """List the cached engines, last used first."""
    from trtconv.core.sizes import format_bytes

    cache = _cache()
    survey = cache.survey()
    entries = survey.entries
    if as_json:
        rows = [{"key": e.key, "engine_bytes": e.engine_bytes, "used": e.used, "parts": dict(e.parts)} for e in entries]
        echo(json.dumps(rows, indent=1))
        return
    for entry in entries:
        models = ", ".join(_names(entry.parts.get("model")))
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        built_by = f"{entry.parts.get('backend', '')} {entry.parts.get('gpu', '')}".strip()
        size = format_bytes(entry.engine_bytes)
        echo(f"{entry.key[:12]}  {size:>10}  {used}  {built_by}  {models}")
    total = sum(e.engine_bytes for e in entries)
    echo(f"{len(entries)} engines, {format_bytes(total)} of at most {format_bytes(cache.limit)} in {cache.root}")
    _tell_left_alone(survey.left_alone)


@command.command("rm")
@click.argument("keys", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Remove every engine.")
def remove(keys: tuple[str, ...], everything: bool) -> None:
    """Remove the engines whose keys begin with KEYS."""
    if not keys and not everything:
        raise click.UsageError("name the begin of a key (`trtconv cache ls` lists them), or --all")
    cache = _cache()
    entries = cache.entries() if everything else tuple(cache.find(k) for k in keys)
    removed = sum(cache.remove(entry.key) for entry in entries)
    echo(f"removed {removed} engines")
    _tell_left_alone(cache.survey().left_alone)


@command.command("verify")
def verify() -> int:
    """Compare every engine with its hash, and remove what is damaged (exit code 1, as for malformed entries)."""
    report = _cache().verify()
    for entry, reason in report.damaged:
        echo(f"{entry.key[:12]}  damaged, removed: {reason}")
    echo(f"{len(report.whole)} of {len(report.whole) + len(report.damaged)} engines are whole")
    _tell_left_alone(report.left_alone)
    return 0 if report.passed else 1


@command.command("prune")
def prune() -> None:
    """Evict down to the limit, and remove what killed writers left (after an hour) and damaged entries (a week)."""
    report = _cache().prune()
    echo(f"removed {len(report.removed)} folders")
    _tell_left_alone(report.left_alone)


def _tell_left_alone(others: Iterable[LeftAlone]) -> None:
    for other in others:
        echo(f"left alone: {other.name} ({other.reason})")


def _names(value: object) -> list[str]:
    return [str(name) for name in value] if isinstance(value, dict) else []


def _cache() -> EngineCache:
    from trtconv.build.cache.store import user_cache
    from trtconv.core.errors import InvalidRequestError

    cache = user_cache()
    if cache is None:
        raise InvalidRequestError("the engine cache is off", hint="unset TRTCONV_CACHE, or name a folder with it")
    return cache
