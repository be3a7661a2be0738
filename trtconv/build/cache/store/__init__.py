"""Built engines by what they were built from: the same request is answered from disk, and a miss says what changed.

`root` marks a folder as a cache and refuses any other; `entry` reads one entry and compares its bytes; `removal` is
the only place that deletes; `cache` is what the other parts of trtconv use.
"""

from trtconv.build.cache.store.cache import (
    DEFAULT_LIMIT,
    EngineCache,
    Lookup,
    default_root,
    differences,
    user_cache,
)
from trtconv.build.cache.store.entry import CacheEntry, cache_key
from trtconv.build.cache.store.root import VARIABLE
from trtconv.build.cache.store.survey import PruneReport, RejectedEntry, VerifyReport

__all__ = [
    "DEFAULT_LIMIT",
    "VARIABLE",
    "CacheEntry",
    "EngineCache",
    "Lookup",
    "PruneReport",
    "RejectedEntry",
    "VerifyReport",
    "cache_key",
    "default_root",
    "differences",
    "user_cache",
]
