"""The twelfth round: code that engineers ship, by theme."""
