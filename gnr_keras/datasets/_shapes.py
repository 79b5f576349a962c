"""The ten kinds of object of the drawn video data set, as 2-D distances.

A drawer receives a canvas, coordinates (`x` to the right, `y` down, the object
filling about -1 to 1) and a `Design`. Distances are negative inside a shape.
"""

from collections import namedtuple

import numpy as np

METAL = (0.72, 0.74, 0.78)
BRASS = (0.80, 0.66, 0.32)
DARK = (0.13, 0.13, 0.15)
WHITE = (0.95, 0.95, 0.93)
GLASS = (0.72, 0.86, 0.93)


# What tells an object from the four others of its category. `kind` (the
# silhouette), `pattern` and `count` are 0 to 4; `width` and `length` 0 to 1;
# `main` and `second` RGB colours of the larger parts and of the decoration.
Design = namedtuple("Design", "kind pattern count width length main second")


def blend(first, second, amount):
    return tuple(
        a + amount * (b - a) for a, b in zip(first, second, strict=True)
    )


def norm(x, y):
    return np.sqrt(x * x + y * y)


def circle(x, y, center_x, center_y, radius):
    return norm(x - center_x, y - center_y) - radius


def ellipse(x, y, center_x, center_y, radius_x, radius_y):
    x, y = (x - center_x) / radius_x, (y - center_y) / radius_y
    level = norm(x, y)
    # First-order distance: the level function over its gradient's length.
    slope = norm(x / radius_x, y / radius_y) + 1e-6
    return level * (level - 1.0) / slope


def box(x, y, center_x, center_y, half_width, half_height, corner=0.0):
    x = np.abs(x - center_x) - (half_width - corner)
    y = np.abs(y - center_y) - (half_height - corner)
    outside = norm(np.maximum(x, 0.0), np.maximum(y, 0.0))
    return outside + np.minimum(np.maximum(x, y), 0.0) - corner


def capsule(x, y, start, end, radius, end_radius):
    """A thick line that tapers from start to end."""
    along_x, along_y = end[0] - start[0], end[1] - start[1]
    x, y = x - start[0], y - start[1]
    position = (x * along_x + y * along_y) / (along_x**2 + along_y**2)
    position = np.clip(position, 0.0, 1.0)
    distance = norm(x - position * along_x, y - position * along_y)
    return distance - (radius + (end_radius - radius) * position)


def lathe(x, y, top, bottom, widths):
    """A turned solid, given by half-widths at even steps down its axis."""
    heights = np.linspace(top, bottom, len(widths))
    side = np.abs(x) - np.interp(y, heights, widths).astype(np.float32)
    return np.maximum(0.85 * side, np.maximum(top - y, y - bottom))


def outline(kind, x, y, center_x, center_y, half_width, half_height):
    """Five silhouettes: ellipse, box, drop, hexagon and half-moon."""
    x, y, size = x - center_x, y - center_y, min(half_width, half_height)
    if kind == 0:
        return ellipse(x, y, 0.0, 0.0, half_width, half_height)
    if kind == 1:
        return box(x, y, 0.0, 0.0, half_width, half_height, 0.25 * size)
    x, y = np.abs(x) / half_width, y / half_height
    if kind == 2:
        return capsule(x, y, (0.0, -0.25), (0.0, 0.72), 0.85, 0.28) * size
    if kind == 3:
        slanted = 0.87 * x + 0.5 * np.abs(y)
        return (np.maximum(slanted, np.abs(y)) - 0.87) * size
    return np.maximum(norm(x, 0.7 * (y + 0.4)) - 1.0, -0.7 - y) * size


def wrap(position, period):
    """Repeats a coordinate, from minus to plus half a period."""
    return position - period * np.round(position / period)


def stripes(position, period):
    return 0.25 * period - np.abs(wrap(position, period))


def decoration(pattern, x, y, period):
    """Five surfaces: stripes, spots, slanted stripes, checks, zigzag."""
    if pattern in (0, 2):
        return stripes(0.71 * (x + y) if pattern else y, period)
    if pattern == 1:
        x = x + 0.5 * period * np.round(y / period)
        return norm(wrap(x, period), wrap(y, period)) - 0.33 * period
    if pattern == 3:
        one, other = stripes(x, 2 * period), stripes(y, 2 * period)
        return np.maximum(np.minimum(one, other), -np.maximum(one, other))
    return np.abs(y - np.abs(wrap(x, period)) + 0.25 * period) - 0.3 * period


def mug(canvas, x, y, design):
    half, tall = 0.46 + 0.18 * design.width, 0.56 + 0.26 * design.length
    x = x + 0.22
    handle = outline(design.kind, x, y, half, 0.0, 0.42, 0.4)
    canvas.solid(np.abs(handle) - 0.085, design.main, 0.08)
    slope = (0.0, 0.16, -0.12, 0.0, 0.1)[design.kind]
    bent = x * (1.0 + slope * y / tall)
    canvas.solid(box(bent, y, 0.0, 0.0, half, tall, 0.14), design.main, 0.45)
    paint = decoration(design.pattern, bent, y, 0.2 + 0.05 * design.count)
    band = np.abs(y - 0.06) - 0.3 * tall - 0.06 * design.count
    canvas.paint(np.maximum(paint, band), design.second)
    top = half * (1.0 + slope)
    rim = ellipse(x, y, 0.0, 0.03 - tall, top, 0.17)
    canvas.solid(rim, blend(design.main, WHITE, 0.3), 0.06, 0.35)
    hollow = ellipse(x, y, 0.0, 0.04 - tall, top - 0.07, 0.115)
    canvas.paint(hollow, blend(design.main, DARK, 0.72))


def bottle(canvas, x, y, design):
    wide, label = 0.33 + 0.12 * design.width, 0.15 + 0.12 * design.length
    widths = (
        (0.14, 0.14, 0.15, wide, wide, wide, wide, wide - 0.04),
        (0.14, 0.16, 0.21, 0.28, wide, wide, wide, wide - 0.05),
        (0.14, 0.14, 0.15, 0.26, 0.53, 0.63, 0.59, 0.36),
        (0.17, 0.31, wide, wide, wide - 0.12, wide, wide, wide),
        (0.18, 0.18, 0.48, 0.5, 0.5, 0.5, 0.5, 0.47),
    )[design.kind]
    canvas.solid(lathe(x, y, -0.8, 0.97, widths), design.main, 0.3)
    canvas.paint(np.abs(y - 0.45) - label, WHITE)
    motif = decoration(design.pattern, x, y - 0.45, 0.2)
    motif = np.maximum(motif, np.abs(y - 0.45) - label + 0.04)
    canvas.paint(motif, design.second)
    cap = box(x, y, 0.0, -0.85, 0.18, 0.12, 0.04)
    canvas.solid(cap, design.second, 0.12, 0.15)


def ball(canvas, x, y, design):
    shape = ellipse(x, y, 0.0, 0.0, 0.84, 0.84 - 0.12 * design.width)
    canvas.solid(shape, design.main, 0.8, 0.1)
    if design.kind == 0:
        panels, reach = 3 + design.count // 2, norm(x - 0.15, y + 0.25)
        turn = np.arctan2(y + 0.25, x - 0.15)
        canvas.paint(np.sin(panels * turn) * reach / panels, design.second)
        paint = reach - 0.13
    elif design.kind == 1:
        arcs = np.abs(circle(np.abs(x), y, 1.05, 0.0, 0.62))
        paint = np.minimum(np.minimum(np.abs(x), np.abs(y)), arcs) - 0.045
    elif design.kind == 2:
        # Narrows the pattern towards the rim, as on a sphere.
        bulge = 1.0 / np.sqrt(np.maximum(1.15 - (x * x + y * y), 0.2))
        paint = decoration(design.pattern, x * bulge, y * bulge, 0.46)
    elif design.kind == 3:
        paint = np.abs(y + 0.3 * x * x) - 0.2 - 0.03 * design.count
        canvas.paint(paint - 0.1, WHITE)
    else:
        turn = np.arctan2(x, -y) * float(2.5 / np.pi)
        paint = norm(x, y) - 0.58 + 0.68 * np.abs(turn - np.round(turn))
    canvas.paint(paint, design.second)


def scissors(canvas, x, y, design):
    spread, long = 0.2 + 0.16 * design.width, 0.8 + 0.2 * design.length
    for side in (-1.0, 1.0):
        tip = (side * spread * long, -long)
        blade = capsule(x, y, (0.0, 0.12), tip, 0.16, 0.03)
        # The cutting edge is straight: half of the taper is cut away.
        edge = 0.03 - (side * x * long + y * spread) * 0.9
        canvas.solid(np.maximum(blade, edge), METAL, 0.08, 0.1)
        tone = design.second if side < 0 and design.pattern > 2 else design.main
        grip = -side * (0.38 + 0.06 * design.width)
        shank = capsule(x, y, (0.0, 0.1), (grip * 0.6, 0.42), 0.1, 0.1)
        canvas.solid(shank, tone, 0.1, 0.12)
        bow = outline(design.kind, x, y, grip, 0.66, 0.28, 0.33)
        canvas.solid(np.abs(bow) - 0.085, tone, 0.08, 0.12)
        canvas.paint(np.abs(bow + 0.05) - 0.04, design.second)
    canvas.solid(circle(x, y, 0.0, 0.06, 0.08), design.second, 0.05, 0.2)


def light_bulb(canvas, x, y, design):
    widths = (
        (0.14, 0.47, 0.57, 0.56, 0.43, 0.28, 0.22),
        (0.14, 0.54, 0.65, 0.66, 0.56, 0.34, 0.2),
        (0.03, 0.17, 0.29, 0.36, 0.36, 0.29, 0.2),
        (0.3, 0.4, 0.4, 0.4, 0.4, 0.38, 0.3),
        (0.6, 0.66, 0.55, 0.44, 0.33, 0.25, 0.2),
    )[design.kind]
    glass, bevel = lathe(x, y, -0.95, 0.45, widths), 0.5
    if design.kind == 3:
        glass, bevel = np.maximum(glass, stripes(y - 0.35 * x, 0.3) - 0.03), 0.1
    canvas.solid(glass, blend(design.main, WHITE, 0.25), bevel)
    wire = box(np.abs(x) + 0.08 * y, y, 0.12, 0.1, 0.025, 0.35)
    canvas.paint(wire, blend(design.main, DARK, 0.7))
    canvas.solid(box(x, y, 0.0, 0.68, 0.21, 0.24, 0.06), METAL, 0.2, 0.1)
    canvas.paint(stripes(y + 0.2 * x, 0.15), blend(METAL, DARK, 0.5))
    collar = box(x, y, 0.0, 0.42, 0.26, 0.08 + 0.03 * design.count, 0.04)
    canvas.solid(collar, design.second, 0.15, 0.12)


def key(canvas, x, y, design):
    tip, pattern = 0.7 + 0.25 * design.length, design.pattern
    shaft = capsule(x, y, (0.0, -0.3), (0.0, tip), 0.09, 0.09)
    comb = (2 + design.count % 3) * 0.095
    teeth = box(x, y, 0.15, tip - comb, 0.15 + 0.04 * design.width, comb)
    teeth = np.maximum(teeth, 0.065 - np.abs(wrap(y - tip, 0.19)))
    canvas.solid(np.minimum(shaft, teeth), (METAL, BRASS)[pattern % 2], 0.08)
    bow = outline(design.kind, x, y, 0.0, -0.5, 0.46, 0.42)
    hole = circle(x, y, 0.0, -0.56, 0.13) if pattern % 3 else bow + 0.2
    canvas.solid(np.maximum(bow, -hole), design.main, 0.1, 0.12)
    canvas.paint(np.abs(bow + 0.08) - 0.045, design.second)
    collar = box(x, y, 0.0, -0.02, 0.15, 0.06, 0.02)
    canvas.solid(collar, design.second, 0.08, 0.15)


def remote_control(canvas, x, y, design):
    half, tall = 0.3 + 0.12 * design.width, 0.82 + 0.13 * design.length
    waist = 1.0 + (0.0, 0.0, 0.25, 0.0, -0.18)[design.kind] * (y + 0.3)
    body = box(x * waist, y, 0.0, 0.0, half, tall, 0.28 - 0.06 * design.count)
    canvas.solid(body, design.main, 0.14)
    pad = outline(design.kind, x, y, 0.0, -0.34, 0.24, 0.22)
    canvas.solid(pad, GLASS if design.kind == 1 else design.second, 0.05, 0.16)
    columns, rows = 2 + design.pattern % 2, 2 + design.count % 3
    across, down = (2 * half - 0.12) / columns, (tall - 0.08) / rows
    column = wrap(x + (0.5 * across if columns == 2 else 0.0), across)
    row, size = wrap(y - 0.5 * down, down), 0.38 * min(across, down)
    corner = size if design.pattern in (0, 3) else 0.02
    buttons = box(column, row, 0.0, 0.0, 0.4 * across, size, corner)
    field = box(x, y, 0.0, 0.5 * tall - 0.04, half - 0.06, 0.5 * tall - 0.04)
    canvas.solid(np.maximum(buttons, field), design.second, 0.05, 0.16)
    canvas.solid(circle(x, y, 0.16 - half, 0.15 - tall, 0.08), WHITE, 0.05, 0.2)


def glasses(canvas, x, y, design):
    side, thick = np.abs(x), 0.055 + 0.014 * design.count
    wide, tall = 0.37 + 0.05 * design.width, 0.3 + 0.1 * design.length
    lens = outline(design.kind, side, y, 0.5, 0.0, wide, tall)
    temple = capsule(side, y, (0.9, -0.1), (0.64, -0.64), 0.06, 0.05)
    canvas.solid(temple, design.second, 0.05, 0.02)
    canvas.solid(lens, design.second, 0.03, 0.02, 0.3 + 0.15 * design.pattern)
    canvas.paint(stripes((side + y) * 0.71 - 0.27, 0.5) + 0.08, WHITE, 0.35)
    bridge = np.maximum(np.abs(circle(x, y, 0.0, 0.1, 0.2)), y + 0.1)
    canvas.solid(np.minimum(np.abs(lens), bridge) - thick, design.main, thick)


def umbrella(canvas, x, y, design):
    deep, panels = 0.66 + 0.22 * design.length, 4 + design.count % 3
    pole = capsule(x, y, (0.0, -0.92), (0.0, 0.76), 0.045, 0.045)
    canvas.solid(pole, METAL, 0.04)
    hook = np.abs(circle(x, y, 0.16, 0.74, 0.16))
    ends = circle(np.abs(x - 0.16), y, 0.16, 0.74, 0.0)
    grip = np.where(y > 0.74, hook, ends) - 0.05 - 0.03 * design.width
    canvas.solid(grip, design.second, 0.06)
    dome = ellipse(x, y, 0.0, 0.05, 0.95, deep + 0.05)
    scallop = wrap(x + 0.95 * (panels + 1) / panels, 1.9 / panels)
    hem = y - (0.11 * panels * panels) * scallop * scallop
    canvas.solid(np.maximum(dome, hem), design.main, 0.4, 0.1)
    rise = np.clip((y - 0.05) / (deep + 0.05), -0.99, 0.0)
    turn = x / np.sqrt(1.0 - rise * rise) / 0.95
    if design.kind < 2:
        paint = stripes(turn + 1.0 / panels, 4.0 / panels)
    else:
        paint = decoration(design.pattern, x, y, 0.22 + 0.03 * design.count)
    canvas.paint(paint, design.second)
    canvas.paint(np.abs(wrap(turn + 1.0, 2.0 / panels)) - 0.015, DARK, 0.5)


def toy_car(canvas, x, y, design):
    hull = box(x, y, 0.0, 0.18, 0.95, 0.2 + 0.06 * design.length, 0.1)
    # The cabin: middle, half-width at the roof, slant of its ends, height.
    middle, reach, slant, roof = (
        (-0.05, 0.32, 0.55, -0.46),
        (-0.2, 0.68, 0.15, -0.52),
        (0.3, 0.24, 0.35, -0.5),
        (0.0, 0.9, 0.03, -0.64),
        (-0.25, 0.2, 0.8, -0.42),
    )[design.kind]
    ends = np.abs(x - middle) - reach - slant * (y - roof)
    cabin = np.maximum(np.maximum(ends * 0.9, roof - y), y - 0.2)
    canvas.solid(np.minimum(hull, cabin), design.main, 0.14)
    panes = np.maximum(stripes(x - middle + 0.315, 0.42) - 0.06, y + 0.02)
    canvas.paint(np.maximum(panes, cabin + 0.1), GLASS)
    paint = decoration(design.pattern, x, y - 0.16, 0.18 + 0.03 * design.count)
    band = np.abs(y - 0.15) - 0.06 - 0.015 * design.count
    canvas.paint(np.maximum(paint, band), design.second)
    canvas.paint(circle(x, y, 0.88, 0.12, 0.08), blend(WHITE, BRASS, 0.3))
    tyre = circle(np.abs(x + 0.02), y, 0.54, 0.4, 0.2 + 0.07 * design.width)
    canvas.solid(tyre, DARK, 0.08, 0.12)
    canvas.paint(tyre + 0.09, design.second)


DRAWERS = {
    drawer.__name__.replace("_", " "): drawer
    for drawer in (mug, bottle, ball, scissors, light_bulb, key)
    + (remote_control, glasses, umbrella, toy_car)
}
