"""``python -m lapwing.cli`` is ``lapwing``."""

from lapwing.cli.app import main

if __name__ == "__main__":
    main()
