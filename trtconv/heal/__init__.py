"""Cures for an engine that is wrong although its graph is right: the builder's own mistakes."""

from trtconv.heal.room import HealRequest, HealResult, heal_engine

__all__ = ["HealRequest", "HealResult", "heal_engine"]
