"""`trtconv sign`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from trtconv import __version__
from trtconv.cli.click_options import GroupedOption, options_of
from trtconv.cli.echo import echo
from trtconv.cli.files import FILE, OUTPUT_FILE, FileCommand
from trtconv.cli.options import JsonOption
from trtconv.frontend.command_line import CommandLine

PASSWORD = "TRTCONV_KEY_PASSWORD"


@click.command("sign", cls=FileCommand)
@click.argument("subject", type=FILE)
@click.option(
    "--key",
    cls=GroupedOption,
    group="Trust",
    example="--key key.pem",
    type=FILE,
    required=True,
    help=f"Private key in PEM (elliptic curve); {PASSWORD} opens it.",
)
@click.option(
    "--certificate",
    cls=GroupedOption,
    group="Trust",
    type=FILE,
    help="The key's certificate in PEM, for verifying by its chain.",
)
@click.option(
    "--chain", cls=GroupedOption, group="Trust", type=FILE, multiple=True, help="A certificate between it and the root."
)
@click.option(
    "-o",
    "--output",
    cls=GroupedOption,
    group="Output",
    type=OUTPUT_FILE,
    help="The signature (default: SUBJECT's name with .sig).",
)
@options_of(JsonOption)
def command(
    subject: Path, key: Path, certificate: Path | None, chain: tuple[Path, ...], output: Path | None, line: CommandLine
) -> None:
    """Sign the whole set that SUBJECT (an engine or a model) is part of: one signature over all of its files.

    Beside it are written an in-toto attestation that lists every proof with the digests of what it started from, and
    a CycloneDX bill of materials; both are signed too.

    \b
    openssl ecparam -name prime256v1 -genkey -noout -out key.pem
    openssl ec -in key.pem -pubout -out key.pub.pem
    trtconv sign out/model.engine --key key.pem
    trtconv verify out/model.engine --key key.pub.pem
    """
    from trtconv.check.compare.subjects import is_engine
    from trtconv.cli.show import write_document
    from trtconv.core.artifacts import manifest_path
    from trtconv.core.errors import InvalidRequestError
    from trtconv.core.trust.signature import SigningKey, sign_set

    if is_engine(subject) and not manifest_path(subject).is_file():
        raise InvalidRequestError(
            f"'{subject}' has no manifest, so nothing says what it was built from", hint="build it with `trtconv build`"
        )
    password = os.environ.get(PASSWORD) or None
    result = sign_set(subject, SigningKey(key, password, certificate, chain), __version__, output)
    facts = {"signature": result.signature, "attestation": result.statement}
    if write_document(line.of(JsonOption).file, "sign", facts):
        return
    for role, file in result.files.files.items():
        echo(f"{role:<16} {file.sha256[:16]}  {file.name}")
    echo(f"signed {len(result.files.files)} files: {result.signature}")
