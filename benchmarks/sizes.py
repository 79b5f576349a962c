"""How large a benchmark is."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Size:
    """What is measured on.

    Attributes:
        image_size: pixels.
        alpha: width of MobileNetV1.
        images: images of an experience, as JPEG files on the disk; an even
            number.
        epochs: passes over it.
        batch_size: patterns in a batch.
        replay_per_batch: replayed ones among them.
        front_batches: images that go through the front at once: the machine
            likes one number best.
        small_batch: patterns in a batch of the generator, as gin files of
            short experiences have it.
        repeats: how often everything is measured; the best counts.
        experiences: short experiences in a row.
        settled: after so many, time and memory shall be flat.
        window: experiences whose time is compared.
        classes: numbers of classes that the time of a batch is compared of.
        patterns: numbers of patterns that the time of each is compared of.
        quickstart: whether the start is that of the quickstart as it is, the
            data of which are drawn first; else that of a smaller one.
    """

    image_size: int
    alpha: float
    images: int
    epochs: int
    batch_size: int
    replay_per_batch: int
    front_batches: tuple[int, ...]
    small_batch: int
    repeats: int
    experiences: int
    settled: int
    window: int
    classes: tuple[int, ...]
    patterns: tuple[int, ...]
    quickstart: bool


FULL = Size(
    image_size=128,
    alpha=1.0,
    images=768,  # the last batch is filled up
    epochs=4,
    batch_size=128,
    replay_per_batch=83,
    front_batches=(16, 32, 64, 128),
    small_batch=16,
    repeats=3,
    experiences=391,
    settled=20,
    window=50,
    classes=(10, 100, 1000),
    patterns=(270, 540, 1080),  # whole batches
    quickstart=True,
)
QUICK = dataclasses.replace(
    FULL,
    images=90,
    epochs=2,
    front_batches=(32,),
    repeats=2,
    experiences=60,
    window=15,
    classes=(10, 100),
    patterns=(45, 90, 180),
    quickstart=False,
)
# Only to see that everything runs: its figures say nothing.
TINY = Size(
    image_size=32,
    alpha=0.25,
    images=12,
    epochs=2,
    batch_size=8,
    replay_per_batch=4,
    front_batches=(8,),
    small_batch=4,
    repeats=1,
    experiences=12,
    settled=3,
    window=4,
    classes=(10, 20),
    patterns=(8, 16),
    quickstart=False,
)
