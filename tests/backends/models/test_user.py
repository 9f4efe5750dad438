"""A user's function is loaded with the modules beside its file, and leaves none of them behind."""

import sys
from pathlib import Path

import pytest

from backends.models import user
from tests.backends.models.test_user_source import write


def built(model: str) -> object:
    with user.loaded(model) as function:
        return function()


@pytest.mark.parametrize(
    "net",
    [
        "from layers_of_mine import block\ndef build():\n    return block()\n",
        "from . import layers_of_mine\ndef build():\n    return layers_of_mine.block()\n",
        "from .layers_of_mine import block\ndef build():\n    return block()\n",
        "def build():\n    from layers_of_mine import block\n    return block()\n",
    ],
)
def test_a_model_may_import_its_neighbours(tmp_path: Path, net: str) -> None:
    model = write(tmp_path, net=net, layers_of_mine="def block():\n    return 'a block'\n")
    path = list(sys.path)
    assert built(model) == "a block"
    assert sys.path == path
    assert "layers_of_mine" not in sys.modules


def test_the_folder_of_a_model_may_be_a_package(tmp_path: Path) -> None:
    model = write(tmp_path, net="from . import WIDTH\ndef build():\n    return WIDTH\n", __init__="WIDTH = 3\n")
    assert built(model) == 3


def test_neighbours_of_two_models_may_have_one_name(tmp_path: Path) -> None:
    net = "import block\ndef build():\n    return block.SIZE\n"
    small = write(tmp_path / "small", net=net, block="SIZE = 1\n")
    large = write(tmp_path / "large", net=net, block="SIZE = 2\n")
    assert (built(small), built(large), built(small)) == (1, 2, 1)


def test_what_a_file_raises_comes_through_and_nothing_is_left(tmp_path: Path) -> None:
    model = write(tmp_path, net="import block\n", block="1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        built(model)
    assert not {"block", user.PACKAGE} & set(sys.modules)
