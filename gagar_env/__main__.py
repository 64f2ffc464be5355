"""`python -m gagar_env` is the command `gagar`."""

from gagar_env.cli import main

if __name__ == "__main__":
    main()
