"""Whose signature is believed, and what an engine of theirs may do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trtconv.core.errors import InvalidRequestError


@dataclass(frozen=True)
class EngineCode:
    """Code inside an engine that runs when it is deserialised; none of it runs unless it is named.

    `host` is the CPU code of a version compatible engine (TensorRT's `engine_host_code_allowed`), `plugins` the
    kernels of plugins that an engine carries itself.
    """

    host: bool = False
    plugins: bool = False


NO_CODE = EngineCode()


def named_code(kinds: Iterable[str]) -> EngineCode:
    """`host` and `plugins`, as a command line names them."""
    return EngineCode(**dict.fromkeys(kinds, True))


@dataclass(frozen=True)
class Trust:
    """One signer, by a public key (PEM), a certificate chain (PEM, the root first) or a Sigstore identity.

    `identity` (an address or a workflow) needs `issuer`, the OpenID Connect provider that vouched for it, and, to
    verify offline, `trust_config` (Sigstore's ClientTrustConfig as JSON). Raises InvalidRequestError unless exactly one
    way is named.
    """

    key: Path | None = None
    certificates: tuple[Path, ...] = ()
    identity: str = ""
    issuer: str = ""
    trust_config: Path | None = None
    signature: Path | None = None
    code: EngineCode = NO_CODE

    def __post_init__(self) -> None:
        """Check that one signer is named."""
        ways = [self.key is not None, bool(self.certificates), bool(self.identity)]
        if sum(ways) != 1:
            raise InvalidRequestError(
                "whose signature is to be believed is not said" if not any(ways) else "more than one signer is named",
                hint="name one of: --key FILE, --root FILE, --identity NAME with --issuer URL",
            )
        if bool(self.identity) != bool(self.issuer):
            raise InvalidRequestError("an identity and its issuer belong together", hint="name --identity and --issuer")
