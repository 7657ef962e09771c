"""``python -m sparkstorm`` is the command line."""

from sparkstorm.cli.main import main

if __name__ == "__main__":
    main()
