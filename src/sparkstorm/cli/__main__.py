"""``python -m sparkstorm.cli``."""

from sparkstorm.cli.main import main

main()
