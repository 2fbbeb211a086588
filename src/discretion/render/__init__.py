"""How everything is shown: sheets for people, which terminals and notebooks print, and JSON for programs."""
