"""`python -m mango_worker` is the same as the console script `mango-worker`."""

from mango_worker.cli import main

if __name__ == "__main__":
    main()
