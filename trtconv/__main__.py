"""`python -m trtconv`."""

from trtconv.cli.main import main

if __name__ == "__main__":
    main()
