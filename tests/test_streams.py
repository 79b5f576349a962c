"""Tests of streams against the definitions of the paper's section 2."""

import numpy as np
import pytest

from gnr_keras import streams
from gnr_keras.datasets import ArraySource
from gnr_keras.datasets import Source
from gnr_keras.datasets import source


def arrays(labels, sessions=None, size=2):
    """Images that hold their own position, to tell which pattern it is."""
    images = np.zeros((len(labels), size, size, 1), np.int32)
    images += np.arange(len(labels))[:, None, None, None]
    if sessions is None:
        return images, np.array(labels)
    return images, np.array(labels), np.array(sessions)


def films(num_classes=4, num_sessions=3, frames=2):
    """`frames` patterns of each class in each session, shuffled."""
    labels, sessions, _ = np.indices(
        (num_classes, num_sessions, frames)
    ).reshape(3, -1)
    order = np.random.default_rng(0).permutation(len(labels))
    return arrays(labels[order], sessions[order])


def positions(experience):
    """Positions of the experience's patterns, read from its images."""
    parts = [
        images[:, 0, 0, 0]
        for images, _ in experience.data.batches(np.arange(len(experience)), 3)
    ]
    return np.concatenate(parts)


def assert_partition(stream, labels):
    """Each training pattern is in one experience, with its own label."""
    chosen = np.concatenate([positions(experience) for experience in stream])
    np.testing.assert_array_equal(np.sort(chosen), np.arange(len(labels)))
    for experience in stream:
        np.testing.assert_array_equal(
            experience.data.labels, labels[positions(experience)]
        )


def classes_of(stream):
    return [experience.classes.tolist() for experience in stream]


TEST = arrays([0, 0])


def test_new_classes_cuts_the_classes_into_experiences():
    train = arrays([3, 0, 1, 2, 4, 0, 3, 4, 1, 2])
    stream = streams.new_classes(train, TEST, 1, 2, class_order=[4, 0, 3, 2, 1])
    assert classes_of(stream) == [[4], [0, 3], [1, 2]]
    assert [experience.index for experience in stream] == [0, 1, 2]
    assert [len(experience) for experience in stream] == [2, 4, 4]
    assert stream.scenario == "NC"
    assert_partition(stream, train[1])


def test_new_classes_draws_the_order_from_the_seed():
    train = arrays(list(range(10)))
    orders = [
        classes_of(streams.new_classes(train, TEST, 2, 1, seed=seed))
        for seed in (0, 0, 1)
    ]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(sum(orders[0], [])) == list(range(10))


def test_new_classes_in_one_experience():
    stream = streams.new_classes(arrays([0, 1, 2]), TEST, 3, 1)
    assert classes_of(stream) == [[0, 1, 2]]


@pytest.mark.parametrize(
    "first, each, match",
    [
        (2, 2, "3 classes after the first"),
        (6, 1, "5 classes cannot be cut"),
        (0, 1, "at least 1"),
        (1, 0, "at least 1"),
    ],
)
def test_new_classes_that_do_not_divide_are_an_error(first, each, match):
    with pytest.raises(ValueError, match=match):
        streams.new_classes(arrays([0, 1, 2, 3, 4]), TEST, first, each)


@pytest.mark.parametrize("class_order", [[0, 1], [0, 1, 1], [0, 1, 5]])
def test_wrong_class_order_is_an_error(class_order):
    with pytest.raises(ValueError, match="each class .* once"):
        streams.new_classes(
            arrays([0, 1, 2]), TEST, 1, 1, class_order=class_order
        )


def test_new_instances_has_one_session_of_all_classes_each_time():
    train = films()
    stream = streams.new_instances(train, TEST, seed=1)
    assert stream.scenario == "NI"
    assert classes_of(stream) == [[0, 1, 2, 3]] * 3
    order = [set(e.data.sessions.tolist()) for e in stream]
    assert sorted(order, key=min) == [{0}, {1}, {2}]
    assert_partition(stream, train[1])


def test_new_instances_draws_the_order_of_the_sessions_from_the_seed():
    train = films(num_classes=1, num_sessions=10)
    orders = [
        [e.data.sessions[0] for e in streams.new_instances(train, TEST, seed)]
        for seed in (0, 0, 1)
    ]
    assert orders[0] == orders[1] != orders[2]


def test_new_instances_and_classes_deals_out_whole_sequences():
    train = films(num_classes=4, num_sessions=3)
    stream = streams.new_instances_and_classes(train, TEST, 2, 3, seed=0)
    sequences = [
        set(zip(e.data.labels.tolist(), e.data.sessions.tolist(), strict=True))
        for e in stream
    ]
    # 12 sequences: 2, then 3 + 3 + 3 + 1.
    assert [len(part) for part in sequences] == [2, 3, 3, 3, 1]
    assert len(set.union(*sequences)) == 12
    assert len(stream[0].classes) == 2
    assert stream.scenario == "NIC"
    assert_partition(stream, train[1])


def test_new_instances_and_classes_starts_with_different_classes():
    for seed in range(20):
        stream = streams.new_instances_and_classes(films(), TEST, 3, 2, seed)
        assert len(stream[0].classes) == 3
        assert len(stream[0]) == 3 * 2


def test_new_instances_and_classes_draws_the_order_from_the_seed():
    orders = [
        [
            positions(e).tolist()
            for e in streams.new_instances_and_classes(
                films(), TEST, 2, 1, seed
            )
        ]
        for seed in (0, 0, 1)
    ]
    assert orders[0] == orders[1] != orders[2]


@pytest.mark.parametrize(
    "first, each, match",
    [(0, 1, "1 to 4"), (5, 1, "1 to 4"), (1, 0, "sequences_per_experience")],
)
def test_wrong_numbers_of_sequences_are_an_error(first, each, match):
    with pytest.raises(ValueError, match=match):
        streams.new_instances_and_classes(films(), TEST, first, each)


def test_streams_by_session_need_sessions():
    train = arrays([0, 1, 2])
    with pytest.raises(ValueError, match="NI stream.*`sessions`"):
        streams.new_instances(train, TEST)
    with pytest.raises(ValueError, match="NIC stream.*`sessions`"):
        streams.new_instances_and_classes(train, TEST, 1, 1)


@pytest.mark.parametrize(
    "scenario, classes",
    [
        ("NC", [[0, 1], [2], [3]]),
        ("NC", [[0]]),
        ("NI", [[0, 1], [0, 1], [1]]),
        ("NI", [[0]]),
        ("NIC", [[0], [0, 1]]),
        ("NIC", [[0, 1], [2], [1]]),
        # The class that repeats need not be of the first experience.
        ("NIC", [[0], [1], [1]]),
    ],
)
def test_streams_that_are_what_they_claim(scenario, classes):
    streams.check_scenario(scenario, classes)


@pytest.mark.parametrize(
    "scenario, classes, match",
    [
        ("NC", [[0, 1], [2], [2, 1]], r"experience 2 repeats .*\[1, 2\]"),
        ("NI", [[0, 1], [0], [1, 2]], r"experience 2 holds .*\[2\]"),
        ("NIC", [[0, 1], [2], [3]], 'Declare it as "NC"'),
        ("NIC", [[0, 1], [0], [1]], 'Declare it as "NI"'),
        ("NIC", [[0]], 'Declare it as "NC"'),
        ("nc", [[0]], "'nc'.*NC"),
    ],
)
def test_streams_that_are_not_what_they_claim(scenario, classes, match):
    with pytest.raises(ValueError, match=match):
        streams.check_scenario(scenario, classes)


def test_stream_checks_its_scenario():
    with pytest.raises(ValueError, match="Not an NC stream"):
        streams.Stream("NC", arrays([0, 0]), TEST, [[0], [1]])


def test_stream_is_a_sequence():
    stream = streams.new_classes(
        arrays([0, 1, 2]), TEST, 1, 1, class_order=[2, 0, 1]
    )
    assert len(stream) == 3
    assert stream[-1].classes == [1]
    assert [e.classes.tolist() for e in stream[:2]] == [[2], [0]]
    assert [e.index for e in reversed(stream)] == [2, 1, 0]
    assert stream.num_classes == 3
    assert stream.image_shape == (2, 2, 1)
    assert stream.class_names == ("0", "1", "2")


@pytest.mark.parametrize(
    "indices, match",
    [
        ([], "at least one experience"),
        ([[0, 1], [], [2]], "Experience 1 of 3 is empty"),
    ],
)
def test_stream_without_patterns_is_an_error(indices, match):
    with pytest.raises(ValueError, match=match):
        streams.Stream("NC", arrays([0, 0, 1]), arrays([0, 1]), indices)


def test_test_set_with_an_unknown_class_is_an_error():
    with pytest.raises(ValueError, match="class 4.* 3 classes"):
        streams.new_classes(arrays([0, 1, 2]), arrays([0, 4]), 1, 1)


def test_test_images_of_another_size_are_an_error():
    with pytest.raises(ValueError, match=r"\(2, 2, 1\) and \(3, 3, 1\)"):
        streams.new_classes(arrays([0, 1]), arrays([0, 1], size=3), 1, 1)


def test_cutting_a_stream_loads_no_images():
    class Unloaded(Source):
        def batches(self, indices, batch_size):
            raise AssertionError("images were loaded")

    _, labels, sessions = films()
    train = Unloaded(labels, (2, 2, 1), sessions)
    test = Unloaded([0, 1], (2, 2, 1))
    assert len(streams.new_classes(train, test, 1, 1)) == 4
    assert len(streams.new_instances(train, test)) == 3
    assert len(streams.new_instances_and_classes(train, test, 1, 1)) == 12


def named_arrays():
    images, labels = np.zeros((6, 2, 2, 3), "uint8"), [0, 0, 1, 1, 2, 2]
    return ArraySource(images, labels, class_names=["ant", "bee", "7"])


def test_class_order_from_a_file(tmp_path):
    """By name or number; a name that is a number is a name."""
    path = tmp_path / "order.txt"
    path.write_text("7\n0\n\n  bee \n")
    data = named_arrays()
    stream = streams.new_classes(data, data, 1, 1, class_order=path)
    assert classes_of(stream) == [[2], [0], [1]]
    assert stream.order == "given"


@pytest.mark.parametrize(
    "text, match",
    [
        ("ant\nbee\n", r"each class .* once. Received: \[0, 1\]"),
        ("ant\nbee\ncow\n", "names a class 'cow'.*'ant', '7'"),
        (None, "There is no file"),
    ],
)
def test_wrong_file_of_an_order_is_an_error(tmp_path, text, match):
    path = tmp_path / "order.txt"
    if text:
        path.write_text(text)
    data = named_arrays()
    with pytest.raises(ValueError, match=match):
        streams.new_classes(data, data, 1, 1, class_order=str(path))


def test_numbering_is_that_of_the_stream():
    data = named_arrays()
    stream = streams.Stream(
        "NC", data, data, [[0, 1], [2, 3], [4, 5]], numbering=[2, 0, 1]
    )
    assert classes_of(stream) == [[2], [0], [1]]
    assert stream.class_names == ("bee", "7", "ant")
    assert stream.original_classes.tolist() == [1, 2, 0]
    assert stream.original_class_names == ["ant", "bee", "7"]
    ((_, labels),) = stream[0].data.batches([0, 1], 2)
    assert labels.tolist() == [2, 2]
    assert stream.test.labels.tolist() == [2, 2, 0, 0, 1, 1]
    with pytest.raises(ValueError, match=r"numbers 0 to 2. Received: \[0, 0"):
        streams.Stream("NC", data, data, [[0]], numbering=[0, 0, 1])


def test_joined_experiences_keep_their_numbers():
    data = named_arrays()
    stream = streams.Stream(
        "NC", data, data, [[0, 1], [2, 3], [4, 5]], numbering=[2, 0, 1]
    )
    joined = source.join([stream[0].data, stream[2].data])
    ((_, labels),) = joined.batches([3, 0], 2)
    assert labels.tolist() == [1, 2]
    both = source.join([data.renumber([1, 0, 2]), data.renumber([0, 1, 2])])
    assert both.labels.tolist() == [1, 1, 0, 0, 2, 2, 0, 0, 1, 1, 2, 2]
