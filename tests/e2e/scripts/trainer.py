"""Transformers' Trainer: losses that models divide by all labels, or mean over their own batch."""

import os

import torch
from planner_batches import ProportionalTrainer
from small import EPOCHS, RATE, TEST, TRAIN, network, points, say
from torch import nn
from transformers import BertConfig, BertForTokenClassification, GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Classifier(nn.Module):
    """Its loss is the mean over its batch."""

    def __init__(self):
        super().__init__()
        self.network = network()

    def forward(self, inputs, labels=None):
        logits = self.network(inputs)
        return nn.functional.cross_entropy(logits, labels), logits


class WithItsOwnLoss(Trainer):
    """The mean over the labels of a batch, though the model could divide by the labels of all."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        return over_labels(model(input_ids=inputs["input_ids"]), inputs["labels"])


def over_labels(outputs, labels, num_items_in_batch=None):
    return nn.functional.cross_entropy(outputs.logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


class Text(torch.utils.data.Dataset):
    """Sequences of numbers, of which some labels do not count, more of some than of others."""

    def __len__(self):
        return TRAIN

    def __getitem__(self, number):
        text = torch.arange(number, number + 8) % 16
        return {"input_ids": text, "labels": text.where(torch.arange(8) > number % 7, -100)}


def language_model():
    torch.manual_seed(0)
    sizes = {"vocab_size": 16, "n_positions": 8, "n_embd": 4, "n_layer": 1, "n_head": 1}
    return GPT2LMHeadModel(GPT2Config(**sizes, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))


def classifier():
    """It takes the number of all labels, and means over its own."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 4}
    dropout = {"hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}
    return BertForTokenClassification(
        BertConfig(vocab_size=16, max_position_embeddings=8, num_labels=16, **sizes, **dropout)
    )


def collate(samples):
    inputs, labels = zip(*samples, strict=True)
    return {"inputs": torch.stack(inputs), "labels": torch.stack(labels)}


def trained(kind, model, data, accumulated=1, **options):
    """Train as a kind of Trainer, with a class of planner_batches before it."""
    arguments = TrainingArguments(
        "made", num_train_epochs=EPOCHS, learning_rate=RATE, per_device_train_batch_size=8,
        gradient_accumulation_steps=accumulated, per_device_eval_batch_size=4, optim="sgd", max_grad_norm=0,
        eval_strategy="epoch" if "eval_dataset" in options else "no", use_cpu=True, report_to="none", disable_tqdm=True,
        save_strategy="no",
    )  # fmt: skip
    trainer = type("Proportional", (ProportionalTrainer, kind), {})(model, arguments, train_dataset=data, **options)
    trainer.train()
    return trainer


texts = [
    trained(Trainer, language_model(), Text(), accumulated=2).model,
    trained(WithItsOwnLoss, language_model(), Text()).model,
    trained(Trainer, language_model(), Text(), compute_loss_func=over_labels).model,
    trained(Trainer, classifier(), Text(), accumulated=2).model,
]
trainer = trained(
    Trainer, Classifier(), points(TRAIN), eval_dataset=points(TEST), data_collator=collate,
    compute_metrics=lambda found: {"correct": (found.predictions.argmax(1) == found.label_ids).mean().item()},
)  # fmt: skip
state = trainer.state
say(nn.ModuleList([trainer.model, *texts]), state.global_step, state.log_history[-2]["eval_correct"])
os._exit(0)
