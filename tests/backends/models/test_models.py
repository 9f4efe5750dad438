"""Descriptions of models: what they count to, without a framework."""

import pytest

from backends import models
from backends.models import shapes
from backends.models.layers import Concat, Conv, Dense, Flatten, MaxPool, Model, Residual, Subsample

#: For the published input, as their sources print them: exact counts of parameters, and
#: multiply-adds in millions.
PUBLISHED = {
    "alexnet": (61_100_840, 714.2),
    "cifar10": (1_068_298, None),
    "mobilenet": (4_231_976, 569),
    "resnet50": (25_557_032, 4089),
    "resnet152": (60_192_808, 11514),
    "squeezenet": (1_235_496, 349),
    "vgg19": (143_667_240, 19632),
}

#: Exact, for the default input; what sources print rounded (0.27 M, about 1 M, 5 MB) is beside it.
COUNTED = {"resnet": (269_722, 270_000), "nin": (966_986, 1_000_000), "cipher": (1_337_590, 5_000_000 / 4)}


def as_published(name):
    """A model for ImageNet, CIFAR10's for its cropped images."""
    return models.model(name, *(((24, 24, 3), 10) if name == "cifar10" else ((224, 224, 3), 1000)))


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_model_has_exactly_the_published_number_of_parameters(name):
    assert models.parameter_count(as_published(name)) == PUBLISHED[name][0]


@pytest.mark.parametrize("name", [name for name, (_, adds) in PUBLISHED.items() if adds])
def test_multiply_adds_are_those_published(name):
    assert models.multiply_adds(as_published(name)) / 1e6 == pytest.approx(PUBLISHED[name][1], rel=1e-3)


@pytest.mark.parametrize("name", COUNTED)
def test_a_model_with_a_rounded_published_size_is_near_it(name):
    exact, rounded = COUNTED[name]
    assert models.parameter_count(models.model(name)) == exact == pytest.approx(rounded, rel=0.08)


def test_every_model_of_the_registry_is_covered_here():
    assert set(models.MODELS) == set(PUBLISHED) | set(COUNTED)
    assert all(models.model(name).name == name for name in models.MODELS)


@pytest.mark.parametrize("name", ["alexnet", "cifar10", "cipher", "mobilenet", "nin", "resnet", "squeezenet"])
@pytest.mark.parametrize("input_shape", [(28, 28, 1), (32, 32, 3)])
def test_small_images_of_any_number_of_classes_fit(name, input_shape):
    description = models.model(name, input_shape, 7)
    assert (description.input_shape, description.classes) == (input_shape, 7)
    assert shapes.trace(description).output == (7,)


def test_an_input_too_small_is_refused_by_layer():
    with pytest.raises(ValueError, match=r"vgg19 on 28x28x1 input: 36_maxpool: a window of 2 does not fit 1x1"):
        models.model("vgg19", (28, 28, 1), 10)


def test_fingerprints_tell_models_apart_and_stay_the_same():
    prints = [models.fingerprint(models.model(name, (32, 32, 3), 10)) for name in models.MODELS]
    assert len(set(prints)) == len(models.MODELS)
    assert models.fingerprint(models.model("nin", (32, 32, 3))) == models.fingerprint(models.model("nin", [32, 32, 3]))
    assert models.fingerprint(models.model("nin")) != models.fingerprint(models.model("nin", classes=11))


def test_a_users_fingerprint_follows_file_content_and_function(tmp_path):
    file = tmp_path / "net.py"
    file.write_text("one")
    first = models.fingerprint(f"{file}:build")
    assert first != models.fingerprint(f"{file}:other")
    file.write_text("two")
    assert first != models.fingerprint(f"{file}:build")
    with pytest.raises(ValueError, match="no file .*missing.py"):
        models.fingerprint(f"{tmp_path}/missing.py:build")
    with pytest.raises(ValueError, match="not of the form"):
        models.fingerprint(f"{tmp_path}/net.txt:build")


def test_shapes_names_and_arithmetic_of_a_small_network_by_hand():
    layers = (
        Conv(4, 3, 2, 1),
        Residual((Conv(6, 1, bias=False),), (Subsample(6, 1),)),
        Concat(((Conv(1, 1),), (MaxPool(3, 1, 1),))),
        Flatten(),
        Dense(5),
    )
    trace = shapes.trace(Model("hand", (7, 5, 2), 5, layers, "here"))
    assert trace.variables == (
        ("0_conv.weight", (4, 2, 3, 3)),
        ("0_conv.bias", (4,)),
        ("1_residual.branch.0_conv.weight", (6, 4, 1, 1)),
        ("2_concat.0.0_conv.weight", (1, 6, 1, 1)),
        ("2_concat.0.0_conv.bias", (1,)),
        ("4_dense.weight", (5, 4 * 3 * 7)),
        ("4_dense.bias", (5,)),
    )
    assert trace.multiply_adds == 12 * (4 * 2 * 9 + 6 * 4 + 6) + 5 * 84


@pytest.mark.parametrize(
    "layers, complaint",
    [
        ((Dense(3),), "0_dense: needs a flat input"),
        ((Flatten(), Flatten(), Conv(3, 1)), "2_conv: needs .height, width, channels."),
        ((Residual((Conv(3, 1),)),), "0_residual: branch gives"),
        ((Concat(((Conv(3, 1),), (MaxPool(2, 2),))),), "branches of different height or width"),
        ((Subsample(1, 2),), "cannot take 2 channels down to 1"),
        ((Flatten(), Dense(4)), r"ends in shape \(4,\), not in 3 classes"),
    ],
)
def test_layers_that_do_not_fit_are_refused_by_name(layers, complaint):
    with pytest.raises(ValueError, match=complaint):
        shapes.trace(Model("wrong", (4, 4, 2), 3, layers, "here"))


def test_initial_weights_follow_the_seed_and_their_limits():
    description = models.model("resnet")
    weights = models.initial_weights(description, 5)
    assert weights.dtype == "float32" and weights.shape == (models.parameter_count(description),)
    assert (weights == models.initial_weights(description, 5)).all()
    assert (weights != models.initial_weights(description, 6)).any()
    first, scales = weights[:432], weights[432:448]
    limit = (6 / 27) ** 0.5
    assert 0.95 * limit < abs(first).max() <= limit and (scales == 1).all()
