"""`trtconv cache`: the engines that `build` and `convert` answer from."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from trtconv.build.cache.store import EngineCache


@click.group("cache")
def command() -> None:
    """List, verify and remove cached engines. TRTCONV_CACHE names another folder, or `off`."""


@command.command("ls")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_entries(as_json: bool) -> None:
    """List the cached engines, last used first."""
    from trtconv.core.sizes import format_bytes

    cache = _cache()
    entries = cache.entries()
    if as_json:
        rows = [{"key": e.key, "engine_bytes": e.engine_bytes, "used": e.used, "parts": dict(e.parts)} for e in entries]
        click.echo(json.dumps(rows, indent=1))
        return
    for entry in entries:
        models = ", ".join(entry.parts.get("model", {}))
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        made = f"{entry.parts.get('backend', '')} {entry.parts.get('gpu', '')}".strip()
        click.echo(f"{entry.key[:12]}  {format_bytes(entry.engine_bytes):>10}  {used}  {made}  {models}")
    total = sum(e.engine_bytes for e in entries)
    click.echo(f"{len(entries)} engines, {format_bytes(total)} of at most {format_bytes(cache.limit)} in {cache.root}")


@command.command("rm")
@click.argument("keys", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Remove every engine.")
def remove(keys: tuple[str, ...], everything: bool) -> None:
    """Remove the engines whose keys begin with KEYS."""
    if not keys and not everything:
        raise click.UsageError("name the begin of a key (`trtconv cache ls` lists them), or --all")
    cache = _cache()
    entries = cache.entries() if everything else tuple(cache.find(k) for k in keys)
    for entry in entries:
        cache.remove(entry.key)
    click.echo(f"removed {len(entries)} engines")


@command.command("verify")
def verify() -> int:
    """Read every engine again, compare it with its hash, and remove what is damaged (exit code 1)."""
    found = _cache().verify()
    bad = [e for e, whole in found if not whole]
    for entry in bad:
        click.echo(f"{entry.key[:12]}  damaged, removed")
    click.echo(f"{len(found) - len(bad)} of {len(found)} engines are whole")
    return 1 if bad else 0


def _cache() -> EngineCache:
    from trtconv.build.cache.store import user_cache
    from trtconv.core.errors import InvalidRequestError

    cache = user_cache()
    if cache is None:
        raise InvalidRequestError("the engine cache is off", hint="unset TRTCONV_CACHE, or name a folder with it")
    return cache
