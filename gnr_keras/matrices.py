"""Pictures of matrices: accuracy by class, and confusion."""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

# Classes whose names have room at an axis.
_MOST_NAMES = 30


def draw_accuracies(history):
    """Draws the accuracy of each class after each evaluation.

    Args:
        history: a `gnr_keras.evaluation.History` with an evaluation.

    Returns:
        An image, an array of shape `(height, width, 3)` from 0 to 255. The
        classes stand in the order in which they appear.
    """
    matrix = np.stack([e.accuracy_by_class for e in history.evaluations])
    figure, panel = _draw(matrix[:, history.class_order], "accuracy")
    rows = range(len(matrix))
    panel.yaxis.set_major_locator(MaxNLocator(10, integer=True))
    # Experiences are counted from 1 for people.
    panel.yaxis.set_major_formatter(
        lambda row, _: (
            str(history.evaluated_after[int(row)] + 1)
            if int(row) in rows
            else ""
        )
    )
    panel.set_ylabel("experience")
    _name_classes(panel.xaxis, history)
    return _render(figure)


def draw_confusion(history):
    """Draws what the patterns of each class were taken for.

    Args:
        history: a `gnr_keras.evaluation.History` with a confusion matrix.

    Returns:
        An image, likewise.
    """
    order = history.class_order
    counts = history.confusion[np.ix_(order, order)]
    total = counts.sum(axis=1, keepdims=True)
    # Classes that the test set has none of stay white.
    fractions = np.full(counts.shape, np.nan)
    np.divide(counts, total, out=fractions, where=total > 0)
    figure, panel = _draw(fractions, "fraction of the class")
    panel.set_ylabel("class")
    _name_classes(panel.yaxis, history)
    _name_classes(panel.xaxis, history)
    panel.set_xlabel(f"predicted {panel.get_xlabel()}")
    return _render(figure)


def _draw(matrix, meaning):
    figure = Figure(figsize=(6.5, 5.2), layout="constrained", dpi=100)
    panel = figure.subplots()
    image = panel.imshow(
        matrix, vmin=0, vmax=1, aspect="auto", interpolation="nearest"
    )
    figure.colorbar(image, label=meaning)
    return figure, panel


def _name_classes(axis, history):
    names = [history.class_names[number] for number in history.class_order]
    if len(names) <= _MOST_NAMES:
        rotation = 90 if axis.axis_name == "x" else 0
        axis.set_ticks(range(len(names)), names, rotation=rotation)
    axis.set_label_text("class, in the order of appearance")


def _render(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.array(canvas.buffer_rgba())[..., :3]
