"""A local page for one operator: what is on file about an actor, and what a turn of theirs would read.

`onfile.console.app` builds it; nothing is imported from here, so that `import onfile.console` costs nothing.
"""
