"""What trtconv was measured with: `python -m benchmarks` lists every benchmark and runs one."""
