"""Tests of single commands; what holds for all of them lies one level up."""
