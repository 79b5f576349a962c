"""Tests of what is looked at before work is done."""

import numpy as np
import pytest

from gnr_keras import checks


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(
    "number, bounds, fits",
    [
        (0.0, (0, 6), True),
        (-0.0, (0, 6), True),
        (6.0, (0, 6), True),
        (6.01, (0, 6), False),
        (-1e-6, (0, 6), False),
        (60000.0, (0, np.inf), True),
        (np.inf, (0, 6), False),
        (np.nan, (0, np.inf), False),
        (-1.0, (-1, 1), True),
        (-1.01, (-1, 1), False),
        (np.nan, (-np.inf, np.inf), False),
    ],
)
def test_range_of_patterns(number, bounds, fits, dtype):
    # The number in question lies in the last slice.
    patterns = np.full((200, 3), 0.5, dtype)
    patterns[199, 2] = number
    if fits:
        return checks.check_range(patterns, "relu6", *bounds)
    with pytest.raises(ValueError, match="output_activation='relu6'"):
        checks.check_range(patterns, "relu6", *bounds)
