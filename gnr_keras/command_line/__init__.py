"""What the scripts and `python -m gnr_keras` share; no library imports it."""
