"""The file lists that the authors of CORe50 publish."""

import pathlib
import re
import tarfile
import zipfile

_LINE = re.compile(r"(s\d+/o\d+/\S+)\s+(\d+)")
_NAME = re.compile(r"train_batch_(\d+)_filelist\.txt")


def read_lists(folder):
    """Reads the lists of a run.

    Args:
        folder: holds `train_batch_00_filelist.txt` and so on.

    Returns:
        For each experience, its lines as pairs `(file name, class)`.
    """
    folder = pathlib.Path(folder)
    texts = {
        path.name: path.read_text(errors="replace")
        for path in folder.glob("train_batch_*_filelist.txt")
    }
    return _parse_all(texts, folder)


def read_list(path):
    """Reads one list, as pairs `(file name, class)`."""
    return _parse(path.read_text(errors="replace"), path)


def read_run(path, names, run):
    """Reads the lists of a run from a folder or from an archive.

    Args:
        path: folder or archive that holds one of `names`.
        names: how the folder of the protocol may be called.
        run: number of the run.

    Returns:
        What `read_lists` does.
    """
    path = pathlib.Path(path)
    wanted = [f"{name}/run{run}" for name in names]
    if path.is_dir():
        for inner in wanted:
            for folder in (path / inner, path.parent / inner):
                if folder.is_dir():
                    return read_lists(folder)
    elif path.is_file():
        for inner in wanted:
            texts = _read_archive(path, inner)
            if texts:
                return _parse_all(texts, f"{path}/{inner}")
    raise ValueError(
        f"There is no {' or '.join(wanted)} in {path}. Expected a folder or an "
        "archive with the lists of runs 0 to 9."
    )


def cell_of(name):
    """Returns class, from 0, and session of a file of CORe50."""
    session, number = (int(part[1:]) for part in name.split("/")[:2])
    return number - 1, session


def _read_archive(path, inner):
    """Returns the texts of the lists in the folder `inner`, by name."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                found = {
                    name: archive.read(name)
                    for name in archive.namelist()
                    if f"/{inner}/" in f"/{name}"
                }
        else:
            with tarfile.open(path) as archive:
                found = {
                    member.name: file.read()
                    for member in archive
                    if member.isfile()
                    and f"/{inner}/" in f"/{member.name}"
                    and (file := archive.extractfile(member))
                }
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} cannot be read as an archive: {error}. Download it again."
        ) from error
    return {
        pathlib.PurePath(name).name: data.decode(errors="replace")
        for name, data in found.items()
    }


def _parse_all(texts, place):
    found = {
        int(match[1]): name
        for name in texts
        if (match := _NAME.fullmatch(name))
    }
    if not found or sorted(found) != list(range(len(found))):
        raise ValueError(
            f"{place} must hold train_batch_00_filelist.txt and so on, "
            f"without gaps. It holds: {sorted(found) or 'none'}. Extract the "
            "archive of the lists again."
        )
    return [
        _parse(texts[found[number]], f"{place}/{found[number]}")
        for number in range(len(found))
    ]


def _parse(text, place):
    lines = []
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LINE.fullmatch(line.strip())
        if match:
            lines.append((match[1], int(match[2])))
        elif line.strip():
            raise ValueError(
                f"Line {number} of {place} is not that of a list: {line!r}. "
                "Expected a file and a class, such as "
                "'s2/o21/C_02_21_230.png 20'."
            )
    return lines
