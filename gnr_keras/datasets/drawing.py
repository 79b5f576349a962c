"""Draws a small video data set with the structure of CORe50.

Fifty objects, five in each of ten categories, are filmed in eleven sessions.
A session is one short video of one object on its own background, with its
own light and motion. Everything is computed from a seed with NumPy alone.
"""

import numpy as np

from gnr_keras.datasets import _shapes

NUM_CATEGORIES = 10
OBJECTS_PER_CATEGORY = 5
NUM_OBJECTS = NUM_CATEGORIES * OBJECTS_PER_CATEGORY
NUM_SESSIONS = 11
CATEGORY_NAMES = tuple(_shapes.DRAWERS)
OBJECT_NAMES = tuple(
    f"{category} {number}"
    for category in CATEGORY_NAMES
    for number in range(1, OBJECTS_PER_CATEGORY + 1)
)

# Every category draws from these, so that a colour names no category.
_PALETTE = (
    *((0.84, 0.16, 0.15), (0.95, 0.52, 0.10), (0.96, 0.82, 0.18)),
    *((0.25, 0.62, 0.24), (0.12, 0.62, 0.62), (0.16, 0.34, 0.76)),
    *((0.50, 0.24, 0.64), (0.93, 0.52, 0.68), (0.93, 0.92, 0.88)),
    (0.24, 0.25, 0.29),
)
# Which two of four colours each object of a category has. Main colours
# repeat, so that the mean colour alone does not tell the five apart.
_COLOR_PAIRS = ((0, 1), (1, 0), (0, 2), (2, 3), (2, 1))
_SKINS = ((0.94, 0.76, 0.64), (0.80, 0.58, 0.44), (0.48, 0.32, 0.24))
# The share of the image that an object spans at scale 1.
_FILL = 0.76
# Pixels of one chunk: small enough for the working arrays to stay in cache.
_CHUNK_PIXELS = 1 << 17
# What a random generator is for; the last item of its seed.
_DESIGN, _PLACE, _LIGHT, _MOTION, _BACKGROUND, _HAND, _NOISE = range(7)


class _Canvas:
    """Parts painted one over the other, with a height for the shading."""

    def __init__(self, shape, pixel):
        self.pixel = pixel
        self.color = np.zeros((3,) + shape, np.float32)
        self.coverage = np.zeros(shape, np.float32)
        self.height = np.zeros(shape, np.float32)
        self.distance = np.full(shape, 4.0, np.float32)
        self._part = self.coverage

    def solid(self, distance, color, bevel=0.1, lift=0.05, opacity=1.0):
        """Adds a part; `bevel` is how far its rounded edge reaches in."""
        part = np.clip(0.5 - distance / self.pixel, 0.0, 1.0)
        self._part = part
        depth = np.clip(distance * (-1.0 / bevel), 0.0, 1.0)
        top = lift + bevel * np.sqrt(depth * (2.0 - depth))
        if opacity < 1.0:
            part = part * opacity
        self.height += part * (top - self.height)
        self.coverage += part * (1.0 - self.coverage)
        np.minimum(self.distance, distance, out=self.distance)
        self._lay(part, color)

    def paint(self, distance, color, opacity=1.0):
        """Colours the part added last, where `distance` is negative."""
        paint = np.clip(0.5 - distance / self.pixel, 0.0, opacity)
        self._lay(paint * self._part, color)

    def _lay(self, amount, color):
        for channel, value in zip(self.color, color, strict=True):
            channel += amount * (float(value) - channel)


def draw_session(object_id, session, frames, image_size, seed=0):
    """Draws one session: a short video of one object.

    The number of frames only says how finely the session's path is sampled:
    3 frames are the first, middle and last of 5.

    Args:
        object_id: Integer, 0 to 49. The category is `object_id // 5`.
        session: Integer, 1 to 11, as CORe50 numbers its sessions.
        frames: Integer, the number of frames, at least 1.
        image_size: Integer, the side of the square frames, at least 8.
        seed: Non-negative integer. Another seed gives other objects, other
            backgrounds and other motions.

    Returns:
        A `uint8` array of shape `(frames, image_size, image_size, 3)`.
    """
    _check("object_id", object_id, 0, NUM_OBJECTS - 1)
    _check("session", session, 1, NUM_SESSIONS)
    _check("frames", frames, 1)
    _check("image_size", image_size, 8)
    _check("seed", seed, 0)
    scene = _Scene(int(object_id), int(session), int(image_size), int(seed))
    times = np.linspace(0.0, 1.0, int(frames))
    chunk = max(1, _CHUNK_PIXELS // int(image_size) ** 2)
    video = np.empty((frames, image_size, image_size, 3), np.uint8)
    for start in range(0, int(frames), chunk):
        video[start : start + chunk] = scene.draw(times[start : start + chunk])
    return video


def _check(name, value, lowest, highest=None):
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if whole and lowest <= value <= (value if highest is None else highest):
        return
    expected = f"of at least {lowest}"
    if highest is not None:
        expected = f"from {lowest} to {highest}"
    raise ValueError(
        f"`{name}` must be an integer {expected}. Received: {value!r} (of type "
        f"{type(value).__name__}). Pass a whole number {expected}."
    )


def _design(object_id, seed):
    category, member = divmod(object_id, OBJECTS_PER_CATEGORY)
    # Drawn for the whole category, so that its five objects share no variant.
    random = np.random.default_rng([seed, category, 0, _DESIGN])
    kind, pattern, count, width, length, pair = (
        int(random.permutation(OBJECTS_PER_CATEGORY)[member]) for _ in range(6)
    )
    colors = random.permutation(len(_PALETTE))
    main, second = (_PALETTE[colors[part]] for part in _COLOR_PAIRS[pair])
    # The five widths and the five lengths are spread evenly from 0 to 1.
    return _shapes.Design(
        kind, pattern, count, width / 4, length / 4, main, second
    )


def _wander(random, times):
    """A smooth path from -1 to 1, a function of the time alone."""
    phases = random.uniform(0.0, 2.0 * np.pi, 2)
    speeds = random.uniform((0.4, 0.9), (0.8, 1.4))
    angles = 2.0 * np.pi * speeds * times[:, None] + phases
    path = np.sin(angles) @ np.array([0.7, 0.3])
    return path.astype(np.float32)[:, None, None]


def _value_noise(random, cells, size):
    """Smooth noise of `size` pixels a side, made of `cells` random cells."""
    lattice = random.random((cells + 1, cells + 1)).astype(np.float32)
    position = np.linspace(0.0, cells, size, endpoint=False)
    low = position.astype(int)
    part = (position - low).astype(np.float32)
    part = part * part * (3.0 - 2.0 * part)
    rows = (
        lattice[low] * (1.0 - part[:, None]) + lattice[low + 1] * part[:, None]
    )
    return rows[:, low] * (1.0 - part) + rows[:, low + 1] * part


class _Scene:
    """All that stays the same during a session."""

    def __init__(self, object_id, session, image_size, seed):
        self.key = (seed, object_id, session)
        self.size = image_size
        self.design = _design(object_id, seed)
        category = CATEGORY_NAMES[object_id // OBJECTS_PER_CATEGORY]
        self.drawer = _shapes.DRAWERS[category]
        # The place is shared by all objects filmed in the session.
        place = np.random.default_rng([seed, NUM_OBJECTS, session, _PLACE])
        random = self._random(_LIGHT)
        turn, lean = random.uniform((-np.pi, 0.5), (0.0, 1.0))
        self.light = (
            float(np.cos(turn) * np.sin(lean)),
            float(np.sin(turn) * np.sin(lean)),
            float(np.cos(lean)),
        )
        brightness, warmth = 0.6 * place.uniform(-1.0, 1.0, 2)
        brightness += random.uniform(-0.4, 0.4)
        warmth += random.uniform(-0.4, 0.4)
        tint = np.array([1.0 + 0.14 * warmth, 1.0, 1.0 - 0.16 * warmth])
        self.light_color = ((0.9 + 0.3 * brightness) * tint).astype(np.float32)
        self.margin = max(2, image_size // 10)
        self.background = self._paint_background(place.permutation(5)[:3])

    def _random(self, *purpose):
        return np.random.default_rng([*self.key, *purpose])

    def _paint_background(self, textures):
        """Paints a background larger than the image, for it to drift."""
        random = self._random(_BACKGROUND)
        size = self.size + 2 * self.margin
        base, other = random.uniform(0.15, 0.9, (2, 3))
        # An object that its background swallows could not be told by anyone.
        while np.abs(base - self.design.main).sum() < 0.6:
            base = random.uniform(0.15, 0.9, 3)
        base = base.mean() + 0.6 * (base - base.mean())
        other = base + random.uniform(0.3, 0.6) * (other - base)
        y, x = np.mgrid[0:size, 0:size].astype(np.float32) / size
        turn, period = random.uniform((0.0, 0.12), (np.pi, 0.3))
        along = x * np.cos(turn) + y * np.sin(turn)
        across = y * np.cos(turn) - x * np.sin(turn)
        texture = random.choice(textures)
        if texture == 0:  # A plain gradient.
            mix = 0.5 + 0.6 * (along - along.mean())
        elif texture == 1:  # Wooden planks.
            grain = _value_noise(random, 6, size)
            mix = 0.4 + 0.3 * np.sin(50.0 * across + 8.0 * grain) + 0.3 * grain
            gap = np.abs(across / period - np.round(across / period)) < 0.05
            mix = np.where(gap, -0.3, mix)
        elif texture == 2:  # Tiles.
            mix = np.floor(along / period) + np.floor(across / period)
            mix = np.mod(mix, 2.0)
        elif texture == 3:  # Large blobs.
            mix = _value_noise(random, 4, size) + _value_noise(random, 9, size)
            mix = np.clip(2.5 * mix - 2.0, 0.0, 1.0)
        else:  # Grass or carpet.
            mix = _value_noise(random, 36, size)
            mix = 1.2 * mix + 0.6 * _value_noise(random, 12, size) - 0.4
        colors = base + mix[..., None] * (other - base)
        colors = np.clip(colors, 0.02, 1.0).astype(np.float32)
        return colors.transpose(2, 0, 1)

    def draw(self, times):
        """Draws the frames at `times`, each from 0 to 1."""
        random = self._random(_MOTION)
        tilt, turned = random.uniform((-25.0, 0.0), (25.0, np.pi))
        angle = np.deg2rad(float(tilt) + 35.0 * _wander(random, times))
        scale = _FILL * (0.95 + 0.2 * _wander(random, times))
        squash = 0.825 + 0.175 * _wander(random, times)
        axis = (2.0 * np.arange(self.size, dtype=np.float32) + 1.0) / self.size
        x = (axis[:, None].T - 1.0 - 0.2 * _wander(random, times)) / scale
        y = (axis[:, None] - 1.0 - 0.2 * _wander(random, times)) / scale
        cosine, sine = np.cos(angle), np.sin(angle)
        x, y = x * cosine + y * sine, y * cosine - x * sine
        canvas = _Canvas(x.shape, 2.0 / self.size / scale)
        hand = self._random(_HAND)
        held = hand.random() < 0.5
        skin = _SKINS[hand.integers(len(_SKINS))]
        reach = hand.uniform(0.15, 0.85) * np.pi
        arm_x, arm_y = float(np.cos(reach)), float(np.sin(reach))
        across, along = x * arm_y - y * arm_x, x * arm_x + y * arm_y
        if held:
            palm = _shapes.capsule(across, along, (0, 1.1), (0, 3), 0.4, 0.45)
            canvas.solid(palm, skin, 0.4)
        # Turned about an axis in the image, the object looks foreshortened.
        turn_x, turn_y = float(np.cos(turned)), float(np.sin(turned))
        stretch = (x * turn_x + y * turn_y) * (1.0 / squash - 1.0)
        x, y = x + stretch * turn_x, y + stretch * turn_y
        self.drawer(canvas, x, y, self.design)
        if held:
            fingers = np.abs(across) - 0.2
            thumb = _shapes.capsule(
                fingers, along, (0, 0.7), (0, 1.5), 0.12, 0.16
            )
            canvas.solid(thumb, skin, 0.14, 0.3)
        rows, columns = (
            np.rint(self.margin * (1.0 + _wander(random, times))).astype(int)
            for _ in range(2)
        )
        views = np.lib.stride_tricks.sliding_window_view(
            self.background, (self.size, self.size), axis=(1, 2)
        )
        image = views[:, rows.ravel(), columns.ravel()]
        return self._expose(canvas, image, times)

    def _expose(self, canvas, image, times):
        """Shades the canvas, lays it on the background and adds noise."""
        light_x, light_y, light_z = self.light
        height = canvas.height / canvas.pixel
        slope_x, slope_y = np.zeros_like(height), np.zeros_like(height)
        slope_x[..., 1:-1] = (height[..., 2:] - height[..., :-2]) * 0.5
        slope_y[:, 1:-1] = (height[:, 2:] - height[:, :-2]) * 0.5
        facing = light_z - light_x * slope_x - light_y * slope_y
        facing /= np.sqrt(1.0 + slope_x * slope_x + slope_y * slope_y)
        facing = np.maximum(facing, 0.0)
        shade = 0.45 + 0.7 * facing
        gloss = facing
        for _ in range(4):
            gloss = gloss * gloss
        gloss = 0.35 * gloss * canvas.coverage
        shadow = np.clip(1.0 - canvas.distance * 4.0, 0.0, 1.0)
        index = np.arange(self.size)
        rows, columns = (
            np.clip(index + round(0.06 * self.size * part), 0, self.size - 1)
            for part in (light_y, light_x)
        )
        shadow = shadow[:, rows[:, None], columns]
        behind = (1.0 - canvas.coverage) * (1.0 - 0.5 * shadow * shadow)
        for channel in range(3):
            image[channel] *= behind
            image[channel] += canvas.color[channel] * shade + gloss
            image[channel] *= 255.0 * self.light_color[channel]
        for frame, time in enumerate(times):
            # Keyed by the time, for the frame not to depend on their number.
            random = self._random(_NOISE, round(1e6 * float(time)))
            noise = random.standard_normal(image[:, frame].shape, np.float32)
            image[:, frame] += np.float32(4.5) * noise
        pixels = np.clip(image + 0.5, 0.0, 255.0).astype(np.uint8)
        return pixels.transpose(1, 2, 3, 0)
