"""A recurrent network learns to write like Python's documentation, character by character."""

from pydoc_data.topics import topics
from types import SimpleNamespace

import torch
from torch import nn
from torch.utils.data import Dataset

LENGTH = 32
ALPHABET = "\n !\"'()*,-./0123456789:;<=>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]_`abcdefghijklmnopqrstuvwxyz{}"


class Pieces(Dataset):
    """Pieces of a text, each with the characters that come next."""

    def __init__(self, text):
        self.codes = torch.tensor([ALPHABET.find(character) for character in text if character in ALPHABET])

    def __len__(self):
        return (len(self.codes) - 1) // LENGTH

    def __getitem__(self, at):
        piece = self.codes[at * LENGTH : (at + 1) * LENGTH + 1]
        return piece[:-1], piece[1:]


class Writer(nn.Module):
    """Scores of the next character at every place."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(ALPHABET), 32)
        self.memory = nn.GRU(32, 96, batch_first=True)
        self.scores = nn.Linear(96, len(ALPHABET))

    def forward(self, codes):
        return self.scores(self.memory(self.embedding(codes))[0])


def loss(outputs, targets):
    """Nats a character."""
    return nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())


def job():
    """The first texts to learn from, some others to be judged by."""
    texts = [topics[name] for name in sorted(topics)]
    return SimpleNamespace(
        model=Writer(),
        train=Pieces("\n".join(texts[:24])),
        test=Pieces("\n".join(texts[24:28])),
        loss=loss,
        metrics={"perplexity": lambda outputs, targets: loss(outputs, targets).exp()},
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=0.003),
    )
