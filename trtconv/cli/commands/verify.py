"""`trtconv verify`."""

from __future__ import annotations

from pathlib import Path

import click

from trtconv.cli.click_options import GroupedOption, options_of
from trtconv.cli.echo import echo
from trtconv.cli.files import FILE, FileCommand
from trtconv.cli.options import JsonOption
from trtconv.frontend.command_line import CommandLine


@click.command("verify", cls=FileCommand)
@click.argument("subject", type=FILE)
@click.option(
    "--key",
    cls=GroupedOption,
    group="Trust",
    example="--key key.pub.pem",
    type=FILE,
    help="The signer's public key in PEM.",
)
@click.option(
    "--root",
    cls=GroupedOption,
    group="Trust",
    type=FILE,
    multiple=True,
    help="A certificate in PEM under which the signer's must be.",
)
@click.option(
    "--identity",
    cls=GroupedOption,
    group="Trust",
    default="",
    help="The signer's identity in Sigstore; needs --issuer.",
)
@click.option(
    "--issuer",
    cls=GroupedOption,
    group="Trust",
    default="",
    help="The OpenID Connect provider that vouched for the identity.",
)
@click.option(
    "--trust-config",
    cls=GroupedOption,
    group="Trust",
    type=FILE,
    help="Sigstore's trust configuration, to verify offline.",
)
@click.option(
    "--signature",
    cls=GroupedOption,
    group="Trust",
    type=FILE,
    help="The signature (default: SUBJECT's name with .sig).",
)
@options_of(JsonOption)
def command(
    subject: Path,
    key: Path | None,
    root: tuple[Path, ...],
    identity: str,
    issuer: str,
    trust_config: Path | None,
    signature: Path | None,
    line: CommandLine,
) -> None:
    """Verify the signature of the set that SUBJECT is part of, before anything in it is read; list its proofs."""
    from trtconv.cli.show import write_document
    from trtconv.core.trust.signature import verify_set
    from trtconv.core.trust.trust import Trust

    verified = verify_set(subject, Trust(key, root, identity, issuer, trust_config, signature))
    facts = {"signer": verified.signer, "files": dict(verified.digests), "attestation": dict(verified.statement)}
    if write_document(line.of(JsonOption).file, "verify", facts):
        return
    for proof in verified.proofs:
        parents = ", ".join(f"{p['name']} {p['digest']['sha256'][:12]}" for p in proof["parents"]) or "nothing"
        echo(f"{'proved' if proof['passed'] else 'FAILED':<8} {proof['step']:<8} {proof['claim']} (from {parents})")
    echo(f"VERIFIED  {len(verified.digests)} files, signed by {verified.signer}")
