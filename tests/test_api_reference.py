"""Tests that the pages of docs/api say what the code has."""

import inspect
import pathlib
import re
import subprocess
import sys

import keras
import pytest

import gnr_keras
from gnr_keras import api_reference

ROOT = pathlib.Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "api"


def test_pages_are_what_the_docstrings_say():
    written = {path.name: path.read_text() for path in FOLDER.iterdir()}
    assert written == api_reference.make_pages(), (
        "docs/api is not current; run `python scripts/api_page.py`."
    )


def write_pages(folder):
    return subprocess.run(
        [sys.executable, "scripts/api_page.py", f"--output={folder}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


def test_pages_of_others_stay(tmp_path):
    (tmp_path / "guide.md").write_text("# Guide\n\nTo `gnr_keras`.\n")
    (tmp_path / "gone.md").write_text("# `gnr_keras.gone`\n\nA module.\n")
    result = write_pages(tmp_path)
    assert result.returncode == 0, result.stderr[-3000:]
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert written.pop("guide.md") == "# Guide\n\nTo `gnr_keras`.\n"
    assert written == api_reference.make_pages()


@pytest.mark.parametrize("name", ["README.md", "layers.md"])
def test_a_folder_of_others_is_refused(name, tmp_path):
    (tmp_path / "gone.md").write_text("# `gnr_keras.gone`\n")
    (tmp_path / name).write_text("# API reference\n\nOf another project.\n")
    result = write_pages(tmp_path)
    assert result.returncode == 1
    message = f"error: {tmp_path / name} was not written by this script"
    assert result.stderr.startswith(message)
    assert "choose another --output" in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"gone.md", name}
    text = (tmp_path / name).read_text()
    assert text == "# API reference\n\nOf another project.\n"


def named():
    """All public names, as they are imported."""
    for place, names in api_reference.public_names().items():
        for name, it in names.items():
            yield f"{place}.{name}", it


def test_every_place_is_there_when_the_package_is_imported():
    places = [place for place in api_reference.public_names()]
    assert "gnr_keras.continuing" in places
    program = "import sys, gnr_keras\nassert 'gin' not in sys.modules\n"
    program += "\n".join(places)
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-2000:]


def test_all_that_is_imported_is_there():
    found = dict(named())
    for name in gnr_keras.__all__:
        exported = getattr(gnr_keras, name)
        if inspect.ismodule(exported):
            places = [path for path in found if f".{name}." in path]
            assert places, name
        else:
            assert found[f"gnr_keras.{name}"] is exported
    assert "gnr_keras.streams.new_classes" in found
    assert "gnr_keras.callbacks.CWRConsolidation" in found
    assert "gnr_keras.continuing.load_run" in found


def test_what_docs_and_examples_name_is_there():
    found = {path for path, _ in named()}
    readers = [ROOT / "README.md", *(ROOT / "examples").glob("*.*")]
    # The page of all knobs shows defaults, which come from anywhere.
    readers += {*(ROOT / "docs").glob("*.md")} - {ROOT / "docs" / "gin.md"}
    names = {
        name
        for path in readers
        for name in re.findall(r"\bgnr_keras\.[a-z]\w*\.\w+", path.read_text())
    }
    assert "gnr_keras.backbones.above" in names
    assert names <= found


@pytest.mark.parametrize(
    ("path", "it"), [pytest.param(*x, id=x[0]) for x in named()]
)
def test_every_name_has_a_docstring_that_covers_its_arguments(path, it):
    doc = it.__doc__
    assert doc and not doc.startswith(f"{it.__name__}("), path
    described = set(re.findall(r"^ +\*{0,2}(\w+): ", doc, re.MULTILINE))
    if described:
        optional = {"name", "kwargs", "dtype"}  # Those of Keras.
        parameters = set(inspect.signature(it).parameters)
        assert parameters - optional <= described, path
    if inspect.isclass(it):
        for name, member in api_reference.public_members(it).items():
            assert api_reference.describe_member(it, name, member), name


class Parent(keras.layers.Layer):
    def own(self, first, *, second="x", third=keras.layers.Layer):
        """Does something.

        Args:
            first: what
                it is.
            second: another.
            third: builds one.

        Returns:
            Nothing.
        """

    def call(self, inputs):
        return inputs


class Child(Parent):
    """A child.

    Example:

    >>> Child()
    a child

    Reference:
        A book.
    """

    def __init__(self, size=(2, 3)):
        super().__init__()

    def own(self, first, *, second="x", third=keras.layers.Layer):
        return first

    @property
    def age(self):
        """Its age."""


def test_how_a_class_is_described(monkeypatch):
    for kind in (Parent, Child):
        monkeypatch.setattr(kind, "__module__", "gnr_keras.layers")
    monkeypatch.setattr(api_reference.tensorboard, "Child", Child, False)
    monkeypatch.setattr(Child, "__module__", "gnr_keras.tensorboard")
    page = api_reference.make_pages()["tensorboard.md"]
    described = page[page.index("## `gnr_keras.tensorboard.Child`") :]
    assert (
        described
        == """\
## `gnr_keras.tensorboard.Child`

```py
gnr_keras.tensorboard.Child(size=(2, 3))
```

A child.

*Example:*

```py
>>> Child()
a child
```

*Reference:*

A book.

### `own`

```py
own(first, *, second='x', third=Layer)
```

Does something.

*Args:*

- `first`: what it is.
- `second`: another.
- `third`: builds one.

*Returns:*

Nothing.

### `age`

Its age.
"""
    )
