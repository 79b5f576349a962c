"""CORe50: 50 objects, filmed in 11 sessions each."""

from __future__ import annotations

import itertools
import pathlib
import re
import warnings
from typing import TYPE_CHECKING

import numpy as np
import tensorflow_datasets as tfds

from gnr_keras import types
from gnr_keras.datasets import downloads
from gnr_keras.datasets import files
from gnr_keras.datasets.embedded import TEST_SESSIONS

if TYPE_CHECKING:
    from gnr_keras.datasets.source import Source

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
_HOMEPAGE = "https://vlomonaco.github.io/core50/"
_FOLDER = "core50_128x128"
_IMAGES_URL = f"http://bias.csr.unibo.it/maltoni/download/core50/{_FOLDER}.zip"
LISTS_URLS = {
    "batches_filelists": f"{_HOMEPAGE}data/batches_filelists.zip",
    "NIC_v2_391": f"{_HOMEPAGE}data/batches_filelists_NICv2.zip",
}
_FRAME = re.compile(r"C_(\d+)_(\d+)_\d+\.png")
_LAYOUT = (
    f"Expected {_FOLDER}/s1/o1/C_01_01_000.png and so on: sessions s1 to "
    "s11, objects o1 to o50."
)
_ADVICE = (
    f"{_LAYOUT} Download {_FOLDER}.zip, the archive of cropped 128x128 images, "
    f"from {_HOMEPAGE}, extract it, and give the folder that it is in as "
    "`data_dir`."
)


def core50(
    image_size: int = 128,
    every: int = 1,
    test_every: int | None = None,
    skip_corrupt: bool = False,
    data_dir: types.Path | None = None,
    progress: types.Progress | None = None,
) -> tuple[Source, Source]:
    """Opens CORe50 from the folders of its archive, or downloads that.

    Sessions 3, 7 and 10 are the test set, in the order of the authors'
    `test_filelist.txt`. Videos that are missing are left out, with a warning.

    Args:
        image_size: height and width of a frame, in pixels; the files have
            128.
        every: 1 for all frames; `n` for the first and then every n-th frame
            of each training video.
        test_every: likewise, counted over the whole test list: 20 gives the
            authors' `test_filelist_20.txt`. `every` if `None`.
        skip_corrupt: whether frames that cannot be decoded are left out; all
            are read to find them. Otherwise such a frame ends the run.
        data_dir: folder that holds `core50_128x128` or its archive, or that
            folder itself; `default_data_dir()` if `None`.
        progress: optional function of `(done, total)` videos listed, and then
            of frames checked.

    Returns:
        Two `FileSource`s `(train, test)` with one class per object.

    Reference:
        Lomonaco and Maltoni, "CORe50: a New Dataset and Benchmark for
        Continuous Object Recognition", 2017.
    """
    test_every = every if test_every is None else test_every
    for name, value in (("every", every), ("test_every", test_every)):
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(
                f"`{name}` must be a positive integer: 1 keeps all frames. "
                f"Received: {value!r}."
            )
    root = find_images(data_dir)
    videos = list_videos(root, progress)
    training = {
        cell: frames[::every]
        for cell, frames in videos.items()
        if cell[0] not in TEST_SESSIONS
    }
    # Cut as one list, in which objects are sorted as text: o1, o10, o11.
    order = itertools.product(
        TEST_SESSIONS, sorted(range(1, len(OBJECT_NAMES) + 1), key=str)
    )
    frames = [(cell, f) for cell in order for f in videos.get(cell, ())]
    test = [(cell, [frame]) for cell, frame in frames[::test_every]]

    def source(groups, what):
        groups = list(groups)
        if not groups:
            raise ValueError(f"{root} holds no video of the {what}. {_ADVICE}")
        return files.grouped_source(
            [frames for _, frames in groups],
            [number - 1 for (_, number), _ in groups],
            image_size,
            [session for (session, _), _ in groups],
            class_names=OBJECT_NAMES,
            root=root,
            skip_corrupt=skip_corrupt,
            progress=progress,
        )

    return (
        source(training.items(), "training sessions"),
        source(test, f"test sessions {TEST_SESSIONS}"),
    )


class Core50(tfds.core.GeneratorBasedBuilder):
    """CORe50 for TensorFlow Datasets: `tfds.load("core50")`.

    The images are taken from `core50_128x128`, or from its archive, in
    `data_dir`; where there are none, the archive is downloaded.
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "The cropped frames of 128x128 pixels."}

    def _info(self):
        return tfds.core.DatasetInfo(
            builder=self,
            description=(
                "50 domestic objects of 10 categories, filmed in 11 sessions "
                "with different backgrounds and lighting, about 300 cropped "
                "frames of 128x128 pixels each. Sessions 3, 7 and 10 are the "
                "test split."
            ),
            features=tfds.features.FeaturesDict(
                {
                    "image": tfds.features.Image(encoding_format="png"),
                    "object": tfds.features.ClassLabel(names=OBJECT_NAMES),
                    "category": tfds.features.ClassLabel(names=CATEGORIES),
                    "session": np.int32,
                    "file_name": tfds.features.Text(),
                }
            ),
            supervised_keys=("image", "object"),
            homepage=_HOMEPAGE,
            license="CC BY 4.0",
            citation=(
                "@inproceedings{lomonaco2017core50,\n"
                "  title={{CORe50}: a New Dataset and Benchmark for "
                "Continuous Object Recognition},\n"
                "  author={Lomonaco, Vincenzo and Maltoni, Davide},\n"
                "  booktitle={Conference on Robot Learning},\n"
                "  year={2017}\n}"
            ),
        )

    def _split_generators(self, dl_manager):
        # <data_dir>/core50/1.0.0
        above = pathlib.Path(self.data_dir).parents[1]
        videos = list_videos(find_images(above, dl_manager))
        is_test = {cell: cell[0] in TEST_SESSIONS for cell in videos}
        return {
            name: self._generate_examples(
                {c: videos[c] for c in videos if is_test[c] == wanted}
            )
            for name, wanted in (("train", False), ("test", True))
        }

    def _generate_examples(self, videos):
        for (session, number), frames in videos.items():
            for path in frames:
                name = pathlib.PurePath(path).name
                yield (
                    name,
                    {
                        "image": path,
                        "object": number - 1,
                        "category": (number - 1) // 5,
                        "session": session,
                        "file_name": f"s{session}/o{number}/{name}",
                    },
                )


def find_images(data_dir, manager=None):
    """Finds `core50_128x128` or its archive, or downloads that.

    The lists of the official streams are downloaded along with it.

    Args:
        data_dir: see `core50`.
        manager: a `tfds.download.DownloadManager`, if there is one already.
    """
    above = downloads.check_data_dir(data_dir)
    for folder in (above / _FOLDER, above):
        if (folder / "s1").is_dir():
            return folder
    if (above / _FOLDER).exists():
        raise ValueError(f"{above / _FOLDER} is not CORe50. {_LAYOUT}")
    extracted = downloads.extracted(_FOLDER, above)
    if extracted:
        return extracted
    archive = above / f"{_FOLDER}.zip"
    if not archive.exists():
        archive = _IMAGES_URL
        for holds, url in LISTS_URLS.items():
            downloads.get(url, holds, above, _ADVICE, manager)
    return downloads.get(archive, _FOLDER, above, _ADVICE, manager)


def list_videos(root, progress=None):
    """Lists the frames of each video.

    Args:
        root: the folder `core50_128x128`.
        progress: optional function of `(done, total)` videos.

    Returns:
        A dict from `(session, object)`, both from 1, to paths.
    """
    cells = list(
        itertools.product(
            range(1, NUM_SESSIONS + 1), range(1, len(OBJECT_NAMES) + 1)
        )
    )
    found = {
        cell: folder
        for cell in cells
        if (folder := root / f"s{cell[0]}" / f"o{cell[1]}").is_dir()
    }
    missing = [cell for cell in cells if cell not in found]
    if not found:
        raise ValueError(f"{root} is not CORe50. {_LAYOUT}")
    if missing:
        warnings.warn(
            f"{root} holds {len(found)} of CORe50's {len(cells)} videos; "
            f"s{missing[0][0]}/o{missing[0][1]} is the first that is missing. "
            "Results on it do not compare with published ones.",
            stacklevel=3,
        )
    groups = files.list_images(list(found.values()), progress)
    videos = dict(zip(found, groups, strict=True))
    for cell, frames in videos.items():
        for path in frames:
            match = _FRAME.fullmatch(pathlib.PurePath(path).name)
            if not match or tuple(map(int, match.groups())) != cell:
                raise ValueError(f"{path} is not a frame of CORe50. {_LAYOUT}")
    return videos
