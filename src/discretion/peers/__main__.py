"""Run the commands of peers without loading the rest of the command line: python -m discretion.peers serve ..."""

from discretion.peers.command import app

app()
