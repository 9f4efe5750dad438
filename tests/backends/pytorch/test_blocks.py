"""A sharded model is gathered block by block: the repeated parts of a module."""

import pytest

torch = pytest.importorskip("torch")

from backends.pytorch.blocks import blocks_of  # noqa: E402

LARGE = 600  # a layer of LARGE x LARGE has more than the least bytes of a block


class Layer(torch.nn.Module):
    def __init__(self, width: int = LARGE) -> None:
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


class Network(torch.nn.Module):
    """As language models are; the head may be tied to the embedding."""

    def __init__(self, *layers: torch.nn.Module, tied: bool = False) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(LARGE, LARGE)
        self.layers = torch.nn.ModuleList(layers)
        self.head = torch.nn.Linear(LARGE, LARGE)
        if tied:
            self.head.weight = self.embedding.weight


def test_layers_of_a_list_are_blocks_and_what_surrounds_them_is_not():
    layers = Layer(), Layer()
    assert blocks_of(Network(*layers, tied=True)) == list(layers)


def test_stages_of_nested_sequences_are_blocks_and_small_ones_stay_with_the_rest():
    large, other = torch.nn.Linear(LARGE, LARGE), torch.nn.Linear(LARGE, LARGE)
    within = torch.nn.Sequential(large, torch.nn.ReLU(), torch.nn.Linear(LARGE, 4))
    assert blocks_of(torch.nn.Sequential(within, other)) == [large, other]


def test_a_layer_that_shares_a_parameter_with_another_part_is_no_block():
    own, shared = Layer(), Layer()
    network = Network(own, shared)
    shared.inner[0].weight = network.embedding.weight
    assert blocks_of(network) == [own]


def test_a_job_may_name_the_blocks():
    network = Network(Layer())
    assert blocks_of(network, [network.head]) == [network.head]


def test_layers_within_dictionaries_of_a_list_are_blocks_and_lists_of_parameters_are_none():
    layers = Layer(), Layer()
    parameters = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(LARGE, LARGE))])
    assert blocks_of(Network(torch.nn.ModuleDict({"one": layers[0], "two": layers[1]}), parameters)) == list(layers)


def test_a_block_that_is_named_within_another_is_a_part_of_that():
    network = Network(Layer())
    assert blocks_of(network, [network.layers[0].inner, network.layers[0]]) == [network.layers[0]]
