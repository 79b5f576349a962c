"""One HTML page about finished runs, which needs nothing else to be read."""
