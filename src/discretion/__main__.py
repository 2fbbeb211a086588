"""Run the command line: python -m discretion."""

from discretion.cli import main

main()
