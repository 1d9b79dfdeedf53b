"""`python -m understudy`, where the program is not on the path."""

from understudy.cli import interrupts


def main() -> None:
    """The command line, listening to Ctrl-C from before it is imported."""
    with interrupts.heard():
        try:
            from understudy.cli import program as cli
        except KeyboardInterrupt:
            raise SystemExit(130) from None
        cli.main()


if __name__ == "__main__":
    main()
