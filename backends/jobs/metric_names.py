"""The name of a metric tells whether it is better when higher or when lower, if anything does."""

import re
from typing import List

HIGHER, LOWER = "higher", "lower"
#: What an evaluation calls the loss that training makes small; no metric has this name.
LOSS = "loss"
#: A word as capitals divide a name (valLoss, NLLLoss), and one without regard to them (mAP).
DIVIDED = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
LOWERED = re.compile(r"[a-z]+")
_OF_LOWER = (
    "loss losses logloss error errors err mae mse rmse mape smape mase msle rmsle perplexity ppl wer cer ter eer ece "
    "nll bpc bpb bpd bits entropy crossentropy xent ce bce kl kld divergence deviance brier crps fid kid fad lpips "
    "fpr fnr distance mcd hausdorff cost regret"
)
_OF_HIGHER = (
    "accuracy acc auc auroc auprc roc ap map fbeta fscore precision recall sensitivity specificity tpr tnr "
    "bleu rouge chrf meteor cider iou miou dice jaccard kappa mcc correlation pearson spearman ndcg mrr hits psnr ssim "
    "snr pesq stoi likelihood elbo reward"
)
OF_LOWER, OF_HIGHER = frozenset(_OF_LOWER.split()), frozenset(_OF_HIGHER.split())
#: F1 and R2.
LETTER_AND_NUMBER = re.compile(r"(?<![a-z0-9])[fr]_?[0-9]")
#: Decides only where no other word does: a top-5 error is an error.
WEAK = "top"
#: What comes last decides: a dice loss is a loss.
HEADS = frozenset(("loss", "losses", "error", "errors", "err"))
#: They turn a direction over, as in sklearn's neg_mean_squared_error.
OPPOSITE = frozenset(("neg", "negative", "minus"))


def direction_of(name: str) -> str:
    """HIGHER or LOWER; empty where no word of the name tells, or words of both kinds are in it."""
    words = _words(name)
    of_lower = not OF_LOWER.isdisjoint(words)
    of_higher = not OF_HIGHER.isdisjoint(words) or bool(LETTER_AND_NUMBER.search(name.lower()))
    if of_lower and of_higher and words[-1] not in HEADS:
        return ""
    if not of_lower and not of_higher and WEAK not in words:
        return ""
    is_lower = of_lower != (not OPPOSITE.isdisjoint(words))
    return LOWER if is_lower else HIGHER


def _words(name: str) -> List[str]:
    """Its words in lower case, divided in either way."""
    return LOWERED.findall(name.lower()) + [word.lower() for word in DIVIDED.findall(name)]
