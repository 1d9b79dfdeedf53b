"""`python -m understudy`, where the program is not on the path."""

from understudy.cli import main

main()
