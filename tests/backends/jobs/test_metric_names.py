"""Words of a metric's name tell whether it is better when higher or when lower."""

import pytest

from backends.jobs.metric_names import HIGHER, LOWER, direction_of

OF_LOWER = (
    "ppl perplexity loss val_loss valLoss NLLLoss error_rate top5_error MAE rmse2 WER cer bpc bits_per_char nll FID "
    "dice_loss accuracyError negative_log_likelihood neg_accuracy"
)
OF_HIGHER = (
    "accuracy val/acc top1 Top-5 f1 F1Score roc_auc bleu4 rouge-L R2 r2_score IoU mIoU mAP@50 precision recall@10 "
    "log_likelihood neg_mean_squared_error"
)
OF_NEITHER = "zork certainty maeander power lossless ferocity factor over1 score recall_at_fpr"


@pytest.mark.parametrize(("names", "direction"), [(OF_LOWER, LOWER), (OF_HIGHER, HIGHER), (OF_NEITHER, "")])
def test_the_direction_of_a_metric_is_told_by_whole_words_of_its_name(names: str, direction: str) -> None:
    assert {name: direction_of(name) for name in names.split()} == dict.fromkeys(names.split(), direction)
