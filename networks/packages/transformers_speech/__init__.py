"""Speech and music of transformers, made small from their configs."""

from __future__ import annotations

from networks.packages.transformers_speech import tasks, towers
from networks.packages.transformers_text import IMPORTS as IMPORTS
from networks.packages.transformers_text import REQUIREMENTS as TEXT

REQUIREMENTS = ("scipy", *TEXT)
NETWORKS = (*towers.NETWORKS, *tasks.NETWORKS)
