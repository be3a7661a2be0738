"""Images with text of transformers, and open detectors and segmenters, made small from their configs."""

from __future__ import annotations

from networks.packages.transformers_images import REQUIREMENTS as REQUIREMENTS
from networks.packages.transformers_multimodal import dense, towers
from networks.packages.transformers_text import IMPORTS as IMPORTS

NETWORKS = (*towers.NETWORKS, *dense.NETWORKS)
