"""`python -m trtconv`."""

from trtconv.cli.main import run

if __name__ == "__main__":
    run()
