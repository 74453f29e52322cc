"""``python -m hipport``."""

from hipport.cli.main import main

if __name__ == "__main__":
    main()
