"""Samples and code of a run are those that its plan was profiled for, or it is said."""

from pathlib import Path

import numpy as np
import pytest

from backends import models
from backends.data.dataset import Dataset
from planner.errors import PlanError
from planner.jobs.reference import find_job
from planner.train.plan_fit import check_fit
from planner.train.training_data import JobData, ShippedImages, TrainingData
from tests.planner.plans import plan, planned

IMAGES = Dataset(*(np.zeros((2, 28, 28, 1), np.uint8), np.array([0, 9])) * 2, classes=10)


def test_code_that_has_changed_trains_as_it_is_and_only_the_prediction_is_of_the_former(tmp_path: Path) -> None:
    """One rule for a model file and for a job: people edit their code between runs."""
    path = tmp_path / "net.py"
    path.write_text("def net(): ...\n")
    job = find_job("net.py:net", tmp_path)
    sources: dict[str, tuple[TrainingData, str, bool]] = {
        f"{path}:net": (ShippedImages(IMAGES), models.fingerprint(f"{path}:net"), False),
        "net.py:net": (JobData(job), job.fingerprint, True),
    }
    for model, (data, fingerprint, is_job) in sources.items():
        made = plan(planned("a"), model=model, job=is_job)._replace(fingerprint=fingerprint)
        assert check_fit(made, data) == ""
        assert check_fit(made._replace(fingerprint="former"), data) == (
            f"{model} has changed since it was profiled, so the prediction is that of its former version; "
            "it trains as it is now"
        )


def test_other_images_than_a_known_model_was_profiled_for_are_refused() -> None:
    with pytest.raises(PlanError, match=r"cipher was profiled for other images than these \(28x28x1, 10 classes\)"):
        check_fit(plan(planned("a"), model="cipher")._replace(fingerprint="other"), ShippedImages(IMAGES))
