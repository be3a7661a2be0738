"""Structure-aware fuzzing of everything that trtconv reads: `make fuzz`, and a short fixed part with the tests."""
