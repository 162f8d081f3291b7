"""`python -m evolvent` is the command line."""

from evolvent.cli.main import main

if __name__ == "__main__":
    main()
