"""ImageNet, from the usual folders: one per class."""

from gnr_keras.datasets import files

_ADVICE = (
    "Expected imagenet/train/<class>/*.JPEG and imagenet/val/<class>/*.JPEG, "
    "where <class> is a WordNet id such as n01440764. Download ILSVRC 2012 "
    "from https://image-net.org, extract each class into its own folder, "
    "move the validation images into the folders of their classes, and give "
    "the folder that holds `imagenet` as `data_dir`."
)


def imagenet(image_size=224, data_dir=None, progress=None):
    """Opens ImageNet, or a part of its classes.

    Args:
        image_size: height and width of an image, in pixels.
        data_dir: folder that holds `imagenet`, or that folder itself;
            `default_data_dir()` if `None`.
        progress: optional function of `(done, total)` class folders listed.

    Returns:
        Two `FileSource`s `(train, test)`: the training and the validation
        images. The classes are the folders of `train`, in the order of their
        names.
    """
    root = files.find_folder(data_dir, "imagenet", "train", _ADVICE)
    train = _class_folders(root / "train")
    test = _class_folders(root / "val")
    class_names = [folder.name for folder in train]
    number_of = {name: number for number, name in enumerate(class_names)}
    unknown = [folder.name for folder in test if folder.name not in number_of]
    if unknown:
        raise ValueError(
            f"{root / 'val'} holds classes that {root / 'train'} does not: "
            f"{', '.join(unknown[:5])} ({len(unknown)} of {len(test)}). Every "
            "class of `val` must be in `train`. Remove those folders, or "
            "extract their training images."
        )
    groups = files.list_images([*train, *test], progress)

    def source(folders, groups):
        labels = [number_of[folder.name] for folder in folders]
        return files.grouped_source(
            groups, labels, image_size, class_names=class_names
        )

    return (
        source(train, groups[: len(train)]),
        source(test, groups[len(train) :]),
    )


def _class_folders(folder):
    classes = []
    if folder.is_dir():
        classes = sorted(
            child
            for child in folder.iterdir()
            if child.is_dir() and not child.name.startswith(".")
        )
    if not classes:
        raise ValueError(f"{folder} holds no folder of a class. {_ADVICE}")
    return classes
