import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import gin
import pytest


@pytest.fixture(autouse=True, scope="module")
def gin_is_clear():
    """Gin is one for the process, and a module knows nothing of the others."""
    gin.clear_config()
    yield
    gin.clear_config()
