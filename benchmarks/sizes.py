"""How large a benchmark is."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Size:
    """What is measured on.

    Attributes:
        image_size: pixels.
        alpha: width of MobileNetV1.
        images: images of an experience, as JPEG files on the disk.
        epochs: passes over it.
        batch_size: patterns in a batch.
        replay_per_batch: replayed ones among them.
        repeats: how often everything is measured; the best counts.
        experiences: short experiences in a row.
        settled: after so many, time and memory shall be flat.
        window: experiences whose time is compared.
        classes: numbers of classes that the time of a batch is compared of.
    """

    image_size: int
    alpha: float
    images: int
    epochs: int
    batch_size: int
    replay_per_batch: int
    repeats: int
    experiences: int
    settled: int
    window: int
    classes: tuple[int, ...]


# 768 images, 4 epochs, 45 + 83 patterns in a batch.
FULL = Size(128, 1.0, 768, 4, 128, 83, 3, 391, 20, 50, (10, 100, 1000))
QUICK = Size(128, 1.0, 90, 2, 128, 83, 2, 120, 20, 30, (10, 1000))
# Only to see that everything runs: its figures say nothing.
TINY = Size(32, 0.25, 12, 2, 8, 4, 1, 12, 3, 4, (10, 20))
