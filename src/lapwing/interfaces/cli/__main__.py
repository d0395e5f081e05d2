"""``python -m lapwing.interfaces.cli`` is ``lapwing``."""

from lapwing.interfaces.cli.app import main

if __name__ == "__main__":
    main()
