"""The program: `tfrctrace` and `python -m tfrctrace`."""

import sys


def main() -> None:
    """Run the command line and leave with its exit status."""
    try:
        from tfrctrace.cli import run

        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        status = 130  # as shells say it of a program that SIGINT has ended
    sys.exit(status)


if __name__ == "__main__":
    main()
