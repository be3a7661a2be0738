"""The forty-second round: memory shared by size, mechanics of torch, kinds of numbers, sounds, scenes, models."""
