"""How long `trtconv --help` takes beside `python -c "import click"`: the ratio of medians of alternating runs.

python -m benchmarks speed.cli_start [runs]
"""

import statistics
import subprocess
import sys
import time


def seconds(*words: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    commands = {
        'python -c "pass"': ("-c", "pass"),
        'python -c "import click"': ("-c", "import click"),
        "trtconv --help": ("-m", "trtconv", "--help"),
        "trtconv version": ("-m", "trtconv", "version"),
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for words in commands.values():
        seconds(*words)
    for _ in range(runs):
        for name, words in commands.items():
            times[name].append(seconds(*words))
    base = statistics.median(times['python -c "import click"'])
    print(f"median of {runs}, ratio to import click")
    for name, values in times.items():
        print(f"{name:28} {statistics.median(values):.3f} s  {statistics.median(values) / base:.2f}")


if __name__ == "__main__":
    main()
