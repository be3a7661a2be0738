"""The forty-second round: memory that is shared by size, mechanics of torch, kinds of numbers, sounds, scenes, models."""
