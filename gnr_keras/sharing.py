"""What learners of one stream have in common, in a folder."""

import contextlib
import fcntl
import hashlib
import json
import math
import pathlib
import shutil

import numpy as np
import tensorflow as tf

from gnr_keras import storage


class SharedStart:
    """A first experience, and latents of the front that came of it.

    Learners in other processes may use the folder at the same time: what one
    of them computes, the others wait for. A file gets its name when it is
    whole, so that a process may end at any moment.

    Args:
        share_dir: a folder; it is made where there is none.
        key: names the start among those in the folder, see
            `first_experience_key`.
    """

    def __init__(self, share_dir, key):
        self.folder = pathlib.Path(share_dir) / key
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(
                f"Cannot share anything in {share_dir} ({error}). Name a "
                "folder that can be written to as --share_dir or `share_dir`."
            ) from error

    def state(self, compute):
        """Returns the state after the first experience.

        Args:
            compute: returns it where it is not there yet.

        Returns:
            The arrays by name, and whether they were there.
        """
        path = self.folder / "first_experience.npz"
        with self._locked(path):
            if path.exists():
                return _read(path), True
            state = compute()
            with storage.whole_file(path) as file:
                np.savez(file, **state)
        return state, False

    def can_hold(self, key, shape):
        """Whether latents are there, or leave a tenth of the disk free.

        Args:
            key: see `latents`.
            shape: see there.
        """
        if self._latent_path(key).exists():
            return True
        disk = shutil.disk_usage(self.folder)
        needed = math.prod(shape) * np.dtype(np.float16).itemsize
        return disk.free - needed > disk.total / 10

    def latents(self, key, shape, compute):
        """Returns latents, mapped from a file.

        Args:
            key: names the images.
            shape: shape of their latents.
            compute: fills an array with them where they are not there yet.
        """
        path = self._latent_path(key)
        with self._locked(path):
            if not path.exists():
                with storage.whole_array(path, np.float16, shape) as array:
                    compute(array)
        try:
            found = np.load(path, mmap_mode="r", allow_pickle=False)
            if found.shape != tuple(shape) or found.dtype != np.float16:
                raise ValueError(
                    f"it holds {found.dtype} of shape {found.shape}, not "
                    f"float16 of shape {tuple(shape)}"
                )
        except storage.UNREADABLE as error:
            raise _damaged(path, error) from error
        return found

    def _latent_path(self, key):
        return self.folder / f"folded_latents_{key}.npy"

    @contextlib.contextmanager
    def _locked(self, path):
        # The system unlocks the file of a process that ends.
        with open(f"{path}.lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _read(path):
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except storage.UNREADABLE as error:
        raise _damaged(path, error) from error


def _damaged(path, error):
    return ValueError(
        f"{path} is damaged ({str(error) or type(error).__name__}). Delete it; "
        "it will be computed again."
    )


def first_experience_key(
    data, seed, latent_layer, trainer, phase, strategy, renormalization
):
    """Names all that a first experience depends on.

    Args:
        data: the `Source` that is learned.
        seed: the seed of the learner.
        latent_layer: name of the layer at which the classifier is split.
        trainer: the `ClassifierTrainer`, as it is before.
        phase: the `Phase` of the first experience.
        strategy: the `Strategy`.
        renormalization: the `BatchRenormalizationSchedule`, or what is false.
    """
    return make_key(
        data=data.fingerprint,
        seed=seed,
        latent_layer=latent_layer,
        layers=[
            [type(layer).__name__, layer.get_config()]
            for layer in trainer.model.layers
        ],
        weights=make_key(**trainer.state()),
        rates=[phase.rates(0, epoch) for epoch in range(phase.epochs)],
        augment=_example(phase.augment),
        trainer=[trainer.batch_size, trainer.momentum, trainer.steps_per_call],
        replicas=tf.distribute.get_strategy().num_replicas_in_sync,
        weight_decay=trainer.weight_decay,
        objective=type(strategy.objective).__name__,
        protection=strategy.protection
        and trainer.feature_optimizer.get_config(),
        centering=strategy.consolidation and strategy.consolidation.centering,
        renormalization=renormalization
        and [
            renormalization.r_max,
            renormalization.d_max,
            renormalization.first_update_rate,
        ],
        **_types(trainer.model),
    )


def _types(model):
    """What layers compute in; nothing for float32, which had no name once."""
    types = [layer.compute_dtype for layer in model.layers]
    return {} if set(types) == {"float32"} else {"types": types}


def make_key(**parts):
    """Returns a name for what the parts come to.

    Args:
        **parts: arrays, or configurations of Keras.
    """
    digest = hashlib.sha256()
    for name, part in sorted(parts.items()):
        digest.update(name.encode())
        if isinstance(part, np.ndarray):
            header = f"{part.dtype}{part.shape}"
            digest.update(header.encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        else:
            # Names count how many there were before.
            text = json.dumps(_unnamed(part), sort_keys=True, default=repr)
            digest.update(text.encode())
    return digest.hexdigest()[:32]


def _unnamed(config):
    if isinstance(config, dict):
        return {k: _unnamed(v) for k, v in config.items() if k != "name"}
    if isinstance(config, list | tuple):
        return [_unnamed(part) for part in config]
    return config


def _example(augment):
    """What an augmentation makes of noise: two of them look alike by it."""
    if augment is None:
        return None
    noise = np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)
    seeds = np.arange(16, dtype=np.int32).reshape(8, 2)
    changed = [augment(tf.constant(noise), (16, 16), seed) for seed in seeds]
    return make_key(changed=np.stack(changed))
