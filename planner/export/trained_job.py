"""A run of a job becomes its model with the trained weights: the job's function is called here.

Files of weights need no more than that. Graphs need the job's data, and its forward.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backends.jobs import user_job
from backends.jobs.failure import JobFailure, own_code
from backends.jobs.user_job import DATA_VARIABLE, UserJob
from backends.protocol.member_specs import JobSpec, ReplicaSpec
from backends.training.workload import workload
from planner.errors import ExportError, PlanError
from planner.export.class_names import class_names
from planner.export.trained_model import TrainedModel, trained
from planner.export.trained_run import RUN_REMEDY, TrainedRun
from planner.jobs.reference import JobReference, find_job
from planner.json_records import load
from planner.plan.file import Plan
from planner.train.orders import Options

#: How a user's own model takes weights that no lines can load.
NOT_STRICT = "model.load_state_dict(weights, strict=False)"
AFTER_A_CALL = "call it once, for its forward makes parts of it; then model.load_state_dict(weights)"


def of_torch_job(run: TrainedRun, plan: Plan, classes: str | None, needs_graph: bool) -> TrainedModel:
    """The model of a job in PyTorch, or its weights alone where its function fails here.

    needs_graph: without it, the model is called only to find what it takes.
    Raises JobFailure, ValueError or PlannerError.
    """
    from backends.pytorch import jobs, state_dicts

    saved = run.checkpoint()
    parts = ((saved.weights, saved.layout.variables), (saved.state, saved.layout.state_variables))
    arrays = {each.name: flat[each.part].reshape(each.shape) for flat, variables in parts for each in variables}
    try:
        job = find_job(plan.run.model)
    except PlanError as error:  # the file is gone
        if needs_graph:
            raise
        return _arrays_alone(run, arrays, error)
    with _in_its_folder(job) as spec:
        try:
            with own_code(spec.folder, spec.text):
                jobs.seed_everything(load(Options, run.folder.options, RUN_REMEDY).seed)
                user = user_job.checked(user_job.call(spec))
        except (JobFailure, ValueError) as error:
            if needs_graph:
                raise JobFailure(f"{error}{_hint(error)}") from error
            return _arrays_alone(run, arrays, error)
        by_hand = _completed(arrays, user, spec)
        try:
            module = state_dicts.put(arrays, user.model)
        except ValueError as error:
            raise ExportError(f"cannot export {job.text}: {error}") from error
        own, place = state_dicts.unwrapped(module)
        made = TrainedModel(run, None, _classes(user.class_names, classes), (), (), _changes(job, plan), job)
        made = made._replace(state=state_dicts.state_of(own), by_hand=by_hand, place=f"made.model{place}")
        return _called(made, module, user, spec, needs_graph)


def _arrays_alone(run: TrainedRun, arrays: dict[str, Any], error: Exception) -> TrainedModel:
    from backends.pytorch import state_dicts

    note = (
        f"the job's function fails here: {error}{_hint(error)}. So the file has what the checkpoint has, to be loaded "
        "with strict=False: buffers of whole numbers, and second names of shared weights, are not in it"
    )
    return TrainedModel(run, None, (), (), (), (note,), state=state_dicts.of_arrays(arrays), by_hand=NOT_STRICT)


def _completed(arrays: dict[str, Any], user: UserJob, spec: JobSpec) -> str:
    """Call the job's forward where that makes parts of the model; tell how these are loaded."""
    from backends.pytorch import jobs, state_dicts

    if not state_dicts.unknown_to(user.model, arrays):
        return ""
    before = {*user.model.state_dict()}
    with contextlib.suppress(Exception), own_code(spec.folder, spec.text):  # what is unknown then is told
        jobs.load_job(user)
    return "" if before == {*user.model.state_dict()} else AFTER_A_CALL


def _called(made: TrainedModel, module: Any, user: UserJob, spec: JobSpec, needs_graph: bool) -> TrainedModel:
    """With what the job's forward gives the model, as far as that is found or needed."""
    from backends.pytorch import export, jobs

    try:
        with own_code(spec.folder, spec.text):
            calls = export.calls_of(module, jobs.load_job(user))
            made = made._replace(arguments=calls[-1][1].text())
            graph = export.of_calls(module, calls)
            inputs, outputs = map(tuple, export.described(graph))
    except Exception:  # noqa: BLE001 - of the user's own code
        if needs_graph:
            raise
        return made
    return made._replace(graph=graph, inputs=inputs, outputs=outputs)


def of_keras_job(run: TrainedRun, plan: Plan, classes: str | None) -> TrainedModel:
    """The model of a job in TensorFlow, which makes its variables with the job's data.

    Raises JobFailure, ValueError or PlannerError.
    """
    from backends.tensorflow import export

    job, path = find_job(plan.run.model), run.folder.checkpoint.resolve()
    with _in_its_folder(job) as spec:
        try:
            found = workload(ReplicaSpec(plan.framework, job.text, job=spec))
            replica = trained(found.build().replica, path)
        except JobFailure as error:
            raise JobFailure(f"{error}{_hint(error)}") from error
        assert found.brought is not None, "a spec with a job loads it"
        names = _classes(found.brought.classes, classes)
        made = TrainedModel(run, None, names, (), (), _changes(job, plan), job, replica=replica)
        with contextlib.suppress(Exception):  # a model may take other things than the data set has
            inputs, outputs, arguments = export.described(made.keras, found.brought)
            return made._replace(inputs=tuple(inputs), outputs=tuple(outputs), arguments=arguments)
    return made


@contextlib.contextmanager
def _in_its_folder(job: JobReference) -> Iterator[JobSpec]:
    """A job on this machine, whose function goes to the folder of its project."""
    with contextlib.chdir(Path.cwd()):
        yield JobSpec(job.text, str(job.project.folder.resolve()), job.module, job.function)


def _classes(own: tuple[str, ...], given: str | None) -> tuple[str, ...]:
    return own if given is None else class_names(given, "", len(given.split(",")))


def _changes(job: JobReference, plan: Plan) -> tuple[str, ...]:
    note = f"{job.text} has changed since it was profiled; the weights are put into the model as it is now"
    return (note,) * (job.fingerprint != plan.fingerprint)


def _hint(error: Exception) -> str:
    """The remedy where the job misses its data, which may be on the devices only."""
    missing = "FileNotFound" in str(error) or DATA_VARIABLE in str(error)
    return f"; if its data are elsewhere here, name their folder in {DATA_VARIABLE}" if missing else ""
