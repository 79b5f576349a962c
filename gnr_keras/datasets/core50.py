"""CORe50: 50 objects, filmed in 11 sessions each."""

import warnings

import numpy as np

from gnr_keras.datasets import files
from gnr_keras.datasets.embedded import TEST_SESSIONS

NUM_SESSIONS = 11
# In the order of the objects' numbers, and spelled as the authors do.
CATEGORIES = (
    "plug_adapter",
    "mobile_phone",
    "scissor",
    "light_bulb",
    "can",
    "glass",
    "ball",
    "marker",
    "cup",
    "remote_control",
)
OBJECT_NAMES = tuple(
    f"{category}{number}" for category in CATEGORIES for number in range(1, 6)
)
_FOLDER = "core50_128x128"
_ADVICE = (
    f"Expected {_FOLDER}/s1/o1/C_01_01_000.png and so on: sessions s1 to "
    "s11, objects o1 to o50. Download and extract the archive of cropped "
    "128x128 images from https://vlomonaco.github.io/core50/, and give the "
    "folder that it is in as `data_dir`."
)


def core50(image_size=128, every=1, data_dir=None, progress=None):
    """Opens CORe50 from the folders of its archive.

    Sessions 3, 7 and 10 are the test set. Videos that are missing are left
    out, with a warning.

    Args:
        image_size: height and width of a frame, in pixels; the files have
            128.
        every: 1 for all frames, 20 for the first and then every 20th frame
            of each video. (The authors' `test_filelist_20.txt` counts on
            across videos, so that it holds other frames.)
        data_dir: folder that holds `core50_128x128`, or that folder itself;
            `default_data_dir()` if `None`.
        progress: optional function of `(done, total)` videos listed.

    Returns:
        Two `FileSource`s `(train, test)` with one class per object.

    Reference:
        Lomonaco and Maltoni, "CORe50: a New Dataset and Benchmark for
        Continuous Object Recognition", 2017.
    """
    if not isinstance(every, (int, np.integer)) or every < 1:
        raise ValueError(
            "`every` must be a positive integer: 1 keeps all frames. "
            f"Received: {every!r}."
        )
    root = files.find_folder(data_dir, _FOLDER, "s1", _ADVICE)
    cells = [
        (session, number)
        for session in range(1, NUM_SESSIONS + 1)
        for number in range(1, len(OBJECT_NAMES) + 1)
    ]
    found = {
        cell: folder
        for cell in cells
        if (folder := root / f"s{cell[0]}" / f"o{cell[1]}").is_dir()
    }
    missing = [cell for cell in cells if cell not in found]
    if missing:
        warnings.warn(
            f"{root} holds {len(found)} of CORe50's {len(cells)} videos; "
            f"s{missing[0][0]}/o{missing[0][1]} is the first that is missing. "
            "Results on it do not compare with published ones.",
            stacklevel=2,
        )
    videos = files.list_images(list(found.values()), progress)
    sessions, numbers = np.array(list(found), int).reshape(-1, 2).T
    is_test = np.isin(sessions, TEST_SESSIONS)

    def source(chosen, what):
        if not chosen.any():
            raise ValueError(f"{root} holds no video of the {what}. {_ADVICE}")
        return files.grouped_source(
            [videos[i][::every] for i in np.flatnonzero(chosen)],
            numbers[chosen] - 1,
            image_size,
            sessions[chosen],
            OBJECT_NAMES,
        )

    return (
        source(~is_test, "training sessions"),
        source(is_test, f"test sessions {TEST_SESSIONS}"),
    )
