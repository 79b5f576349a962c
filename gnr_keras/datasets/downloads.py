"""Archives, from the net or from a folder, by TensorFlow Datasets."""

import os
import pathlib
import urllib.error
import urllib.request
import zipfile

import tensorflow_datasets as tfds

from gnr_keras import dry

_TIMEOUT = 30  # seconds


def default_data_dir():
    """Returns the folder where TensorFlow Datasets keeps its data too."""
    default = os.path.join("~", "tensorflow_datasets")
    return os.path.expanduser(os.environ.get("TFDS_DATA_DIR", default))


def check_data_dir(data_dir):
    """Returns the folder of the data sets; one that is given must exist."""
    if data_dir is None:
        return pathlib.Path(default_data_dir())
    folder = pathlib.Path(data_dir).expanduser()
    if not folder.is_dir():
        raise ValueError(
            f"There is no folder {folder}. Give a folder that exists as "
            "`data_dir`; data sets are looked for there, and kept there."
        )
    return folder


def extracted(holds, data_dir):
    """Returns the folder `holds` of an archive extracted before, if any."""
    for folder in extracted_folders(data_dir):
        if (folder / holds).is_dir():
            return folder / holds
    return None


def extracted_folders(data_dir):
    """Returns the folders of all archives that were extracted wholly."""
    folder = pathlib.Path(data_dir) / "downloads" / "extracted"
    # TensorFlow Datasets leaves what an interruption cut off.
    return sorted(
        path
        for path in folder.glob("*")
        if path.is_dir() and not path.name.startswith("incomplete.")
    )


def get(archive, holds, data_dir, advice, manager=None):
    """Downloads an archive where that is needed, and extracts it.

    What was extracted once is found again.

    Args:
        archive: an address, or the path of a zip archive that is here.
        holds: name of a folder in the archive.
        data_dir: folder of the data sets.
        advice: how to get the data otherwise, the end of the error's message.
        manager: a `tfds.download.DownloadManager`, if there is one already.

    Returns:
        The path of the folder `holds`.
    """
    found = extracted(holds, data_dir)
    if found:
        return found
    dry.check_off(archive)
    is_here = isinstance(archive, os.PathLike)
    manager = manager or tfds.download.DownloadManager(
        download_dir=pathlib.Path(data_dir) / "downloads",
        # Another archive may have been there under this name.
        force_extraction=is_here,
    )
    try:
        path = archive
        if not is_here:
            _check_connection(archive)
            path = manager.download(archive)
        _check_zip(path)
        folder = manager.extract(path)
    except Exception as error:  # They come from many libraries.
        reason = str(error).strip() or type(error).__name__
        raise ValueError(
            f"Could not get {archive}: {reason} {advice}"
        ) from error
    found = pathlib.Path(folder) / holds
    if not found.is_dir():
        raise ValueError(
            f"The archive {archive} holds no folder {holds!r}, so it is "
            f"another one, or not whole. {advice}"
        )
    return found


def _check_zip(path):
    """Raises for what is no archive, or would write outside of its folder."""
    if not zipfile.is_zipfile(path):
        raise ValueError("it is no zip archive, or not a whole one.")
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            # Strict about both kinds of paths, whatever system this is.
            member = pathlib.PureWindowsPath(name)
            if member.drive or member.root or ".." in member.parts:
                raise ValueError(
                    f"its member {name!r} would lie outside of the folder "
                    "that it is extracted to, so that nothing was extracted. "
                    "Archives of this data set hold no such one: do not trust "
                    "it."
                )


def _check_connection(url):
    """Raises at once, where TFDS would try again for minutes."""
    request = urllib.request.Request(url, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT):
            pass
    except urllib.error.HTTPError as error:
        # Some servers answer, but not to this kind of question.
        if error.code not in (403, 405, 501):
            raise
