"""Running a plan (Gu et al., step 6): start server and workers, keep them going, bring the result home."""

import os
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from backends import checkpoint, data, wire
from planner import training
from planner.addresses import data_addresses
from planner.agents import Agent, Call, Event
from planner.certificates import Authority
from planner.crew import Crew, in_parallel
from planner.errors import AgentError, DeviceLostError, InterruptedRunError, PlannerError, RemoteError, RunError
from planner.fleet import Fleet
from planner.planfile import Plan
from planner.runs import EventLog, RunFolder
from planner.training import Options

READY_S = 300.0
STOP_S = 60.0
DRAIN_S = 5.0
#: A worker that fails this often in a row without making a step, or is not reached this often, is given up.
ATTEMPTS = 5
ABSENCES = 40
LONGEST_PAUSE_S = 15.0

OnEvent = Callable[[str, Event], None]


class Launch:
    """One run of a plan. ``windows``, ``spent`` and ``built_s`` fill while it runs, by worker."""

    def __init__(
        self, plan: Plan, fleet: Fleet, dataset: data.Dataset, options: Options, folder: RunFolder, on_event: OnEvent
    ) -> None:
        self._plan = plan
        self._dataset = dataset
        self._options = options
        self._folder = folder
        self._on_event = on_event
        self._crew = Crew(folder.log)
        self._members = [fleet.device(name) for name in plan.names]
        self._slowdowns = {device.name: device.slowdown for device in self._members}
        self._events: queue.Queue[tuple[str, Event]] = queue.Queue()
        self._log = EventLog(folder.events)
        self._go = threading.Event()
        self._over = threading.Event()
        self._ready: set[str] = set()
        self._refused: dict[str, str] = {}
        self._working: dict[str, Agent] = {}
        self._given_up: dict[str, str] = {}
        self._fetching: threading.Thread | None = None
        self._newest_remote: str | None = None
        self._unsaved = "the server wrote none"
        self._joined: set[str] = set()
        self._log_failed = False
        self._before: Path | None = None
        self._courier: Agent | None = None
        self._kept: list[str] = []
        self.windows: dict[str, list[Event]] = {name: [] for name in plan.names}
        self.spent: dict[str, list[list[float]]] = {name: [] for name in plan.names}
        self.built_s: dict[str, float] = {}

    def run(self, resume: Path | None = None) -> dict[str, Any]:
        """Train to the last step; returns the server's account.

        Raises RunError where the run cannot start or ends early, InterruptedRunError on Ctrl-C; both leave the newest
        checkpoint in the run folder and name it.
        """
        self._before = resume.parent if resume else None
        try:
            with self._crew:
                self._reach()
                host, agent = self._start(resume)
                return self._supervise(host, agent)
        finally:
            self._over.set()
            self._log.close()

    # -- before the first step -------------------------------------------------------------------------

    def _reach(self) -> None:
        self._note("planner", {"reaching": [device.name for device in self._members]})
        self._crew.open(self._members)
        if self._crew.errors:
            raise RunError("; ".join(str(error) for error in self._crew.errors.values()))

    def _start(self, resume: Path | None) -> tuple[Call, Agent]:
        plan, crew = self._plan, self._crew
        alone = len(plan.names) == 1
        agent = crew.agents[plan.server] if alone else crew.another(plan.server)
        place = training.cache_name(self._folder.path, "resume.npz")
        saved = agent.store(place, resume.read_bytes()) if resume else None
        kept = agent.store(training.cache_name(self._folder.path, "checkpoint.npz"), b"")
        self._kept = [kept] + ([saved] if saved else [])
        work = training.work(plan, self._options, self._dataset, kept, saved)
        parts = self._parts(int(checkpoint.peek(str(resume))["step"]) if resume else 0)
        if alone:
            host = agent.start("alone", part=parts[plan.server], work=work)
            self._expect(host, "ready")
            self._ready.add(plan.server)
        else:
            host = self._start_cluster(agent, work, parts)
        self._go.set()
        host.go()
        self._note("planner", {"started": True})
        threading.Thread(target=self._pump, args=(plan.server if alone else wire.SERVER, host), daemon=True).start()
        return host, agent

    def _parts(self, done: int) -> dict[str, dict[str, Any]]:
        """Data and orders of every worker, its files on its device; a resumed run draws its batches anew."""
        plan, options = self._plan, self._options
        steps = {worker.name: worker.steps for worker in plan.workers}
        shards = training.shards(self._dataset, plan.names, steps, options.seed)
        test = training.packed(self._dataset.test_images, self._dataset.test_labels)
        parts: dict[str, dict[str, Any]] = {}

        def bring(name: str) -> None:
            agent = self._crew.agents[name]
            self._note(name, {"sending": len(shards[name].content) + len(test.content)})
            files = (training.place(agent, shards[name]), training.place(agent, test))
            parts[name] = training.part(agent, plan, options, self._dataset, name, self._slowdowns[name], files)
            parts[name]["seed"] += done

        in_parallel(plan.names, bring)
        return parts

    def _start_cluster(self, agent: Agent, work: dict[str, Any], parts: dict[str, dict[str, Any]]) -> Call:
        authority = Authority()
        names = {device.name: device for device in self._members}
        address = data_addresses(names, self._crew.agents)[self._plan.server]
        host = agent.start("serve", address=address, identity=list(authority.identity(wire.SERVER)), work=work)
        port = self._expect(host, "port")["port"]
        for name in self._plan.names:
            orders = {
                "part": parts[name],
                "address": address,
                "port": port,
                "identity": list(authority.identity(name)),
                "heartbeat_s": self._options.heartbeat_s,
            }
            threading.Thread(target=self._keep_working, args=(name, orders), daemon=True).start()
        deadline = time.monotonic() + READY_S
        while len(self._ready) < len(self._plan.names):
            if self._refused:
                raise RunError("; ".join(self._refused.values()))
            if time.monotonic() > deadline:
                late = sorted(set(self._plan.names) - self._ready)
                raise RunError(f"{', '.join(late)}: not ready within {READY_S:g} s")
            time.sleep(0.02)
        return host

    def _expect(self, call: Call, key: str) -> Event:
        """The event that says ``key``; raises what the call failed with instead."""
        event = call.event(READY_S)
        if event is not None and key in event:
            return event
        if call.ended:
            call.result()
        raise RunError(f"`{call.verb}` was not ready within {READY_S:g} s")

    # -- workers ---------------------------------------------------------------------------------------

    def _keep_working(self, name: str, orders: dict[str, Any]) -> None:
        """Be this worker's keeper until the run is over: what dies is started again, with growing pauses."""
        agent: Agent | None = self._crew.agents[name]
        failures = absences = 0
        while not self._over.is_set():
            try:
                if agent is None:
                    agent = self._come_back(name)
                self._work_once(name, agent, orders)
                return
            except PlannerError as error:
                if self._over.is_set():
                    return
                if not self._go.is_set():
                    self._refused[name] = str(error)
                    return
                self._events.put((name, {"lost": str(error)}))
                if agent is None:
                    absences += 1
                else:
                    failures, absences = (1 if self._stepped(name) else failures + 1), 0
                    agent.close()
                    agent = None
                hopeless = isinstance(error, AgentError) and not any(life[0] for life in self.spent[name])
                if hopeless or failures == ATTEMPTS or absences == ABSENCES:
                    self._given_up[name] = str(error)
                    return
                self._over.wait(min(2.0 ** (failures + absences), LONGEST_PAUSE_S))
            except Exception as error:  # noqa: BLE001 - a keeper that ended unseen would leave the run waiting for ever
                self._refused[name] = self._given_up[name] = f"{name}: {type(error).__name__}: {error}"
                return

    def _come_back(self, name: str) -> Agent:
        # The server's own connection must not be touched by its host's worker.
        return self._crew.another(name) if name == self._plan.server else self._crew.reopen(name)

    def _work_once(self, name: str, agent: Agent, orders: dict[str, Any]) -> None:
        self.spent[name].append([0, 0.0, 0.0, 0.0, 0.0])
        self._joined.discard(name)
        self._working[name] = agent
        call = agent.start("work", **orders)
        self._expect(call, "ready")
        self._ready.add(name)
        self._go.wait()
        call.go()
        result = call.result(on_event=lambda event: self._events.put((name, event)))
        self._events.put((name, {"worked": result}))

    def _stepped(self, name: str) -> bool:
        return bool(self.spent[name]) and self.spent[name][-1][0] > 0

    # -- while it runs ---------------------------------------------------------------------------------

    def _pump(self, source: str, call: Call) -> None:
        try:
            result = call.result(on_event=lambda event: self._events.put((source, event)))
            self._events.put((source, {"account": result}))
        except PlannerError as error:
            self._events.put((source, {"failed": error}))

    def _supervise(self, host: Call, agent: Agent) -> dict[str, Any]:
        stop_by: float | None = None
        while True:
            try:
                if stop_by is not None and time.monotonic() > stop_by:
                    raise InterruptedRunError(f"the server did not stop within {STOP_S:g} s{self._saved()}")
                account = self._next(agent)
                if account is not None:
                    self._over.set()
                    return self._end(account, agent, interrupted=stop_by is not None)
                if len(self._given_up) == len(self._plan.names) > 1 and stop_by is None:
                    raise RunError("; ".join(self._given_up.values()) + self._saved())
            except KeyboardInterrupt:
                if stop_by is not None or self._over.is_set():
                    raise InterruptedRunError(f"stopped at once{self._saved()}") from None
                self._note("planner", {"stopping": True})
                stop_by = time.monotonic() + STOP_S
                with suppress(DeviceLostError):  # a server that is gone is reported as such
                    host.stop()

    def _next(self, agent: Agent) -> dict[str, Any] | None:
        """Handle one event; the account when that was the last."""
        try:
            source, event = self._events.get(timeout=0.2)
        except queue.Empty:
            return None
        if "failed" in event:
            raise self._server_failed(event["failed"])
        if "account" in event:
            account: dict[str, Any] = event["account"]
            return account
        self._handle(source, event, agent)
        self._note(source, event)
        return None

    def _handle(self, source: str, event: Event, agent: Agent) -> None:
        if "window" in event:
            self.windows[source].append(event["window"])
            if self.spent[source]:
                self.spent[source][-1] = list(event["spent"].values())
            else:
                self.spent[source].append(list(event["spent"].values()))
        elif "built_s" in event:
            self.built_s[source] = event["built_s"]
        elif "joined" in event:
            self._joined.add(event["joined"])
        elif "worked" in event or "lost" in event:
            self._joined.discard(source)
        elif "dropped" in event and event["dropped"] in self._joined:
            # A stopped process would never say so itself: end it, and its keeper starts another.
            self._joined.discard(event["dropped"])
            threading.Thread(target=self._working[event["dropped"]].close, daemon=True).start()
        elif "checkpoint_failed" in event:
            self._unsaved = event["checkpoint_failed"]
        elif "checkpoint" in event and (self._fetching is None or not self._fetching.is_alive()):
            self._fetching = threading.Thread(target=self._fetch, args=(event["checkpoint"],), daemon=True)
            self._fetching.start()

    def _server_failed(self, error: PlannerError) -> PlannerError:
        if self._fetching is not None:
            self._fetching.join(READY_S)
        if isinstance(error, DeviceLostError):
            return RunError(f"the server on {self._plan.server} is lost: {error}{self._saved()}")
        return RunError(f"{error}{self._saved()}")

    def _end(self, account: dict[str, Any], agent: Agent, interrupted: bool) -> dict[str, Any]:
        if self._fetching is not None:
            self._fetching.join()
        self._fetch(None)
        self._drain(agent)
        self._note("planner", {"account": account})
        if interrupted:
            raise InterruptedRunError(f"stopped after step {account['done']} of {account['total']}{self._saved()}")
        if not account["finished"]:
            reason = account.get("reason") or "the server ended early"
            raise RunError(f"{reason} after step {account['done']} of {account['total']}{self._saved()}")
        if not self._has(account["done"]):
            raise RunError(f"the trained weights could not be saved: {self._unsaved}{self._saved()}")
        with suppress(RemoteError):  # a device that is gone by now keeps them until its cache is pruned
            for path in self._kept:
                agent.call("remove", timeout_s=10.0, path=path)
        return account

    def _has(self, step: int) -> bool:
        """Whether the run folder holds the weights after that step."""
        try:
            return bool(checkpoint.peek(str(self._folder.checkpoint))["step"] == step)
        except (OSError, ValueError):
            return False

    def _drain(self, agent: Agent) -> None:
        """The workers' last windows may come after the server's account."""
        deadline = time.monotonic() + DRAIN_S
        while self._joined and time.monotonic() < deadline:
            self._next(agent)

    # -- checkpoints -----------------------------------------------------------------------------------

    def _fetch(self, path: str | None) -> None:
        """Bring the server's newest checkpoint into the run folder, whole or not at all.

        An agent of its own carries it: the server's goes on telling what happens meanwhile.
        """
        where = path or self._newest_remote
        if where is None:
            return
        self._newest_remote = where
        temporary = self._folder.checkpoint.with_suffix(".part")
        try:
            if self._courier is None:
                self._courier = self._crew.another(self._plan.server)
            content = self._courier.fetch(where)
            if content:
                temporary.write_bytes(content)
                os.replace(temporary, self._folder.checkpoint)
        except (OSError, RemoteError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            self._courier = None  # the next fetch starts another
            self._unsaved = f"{self._folder.checkpoint}: {reason} (it is still {where} on {self._plan.server})"
            self._note("planner", {"checkpoint_failed": self._unsaved})
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _saved(self) -> str:
        folder = self._folder.path if self._folder.checkpoint.exists() else self._before
        if folder is None:
            return "; no checkpoint had been taken"
        return f"; the last checkpoint is {RunFolder(folder).checkpoint}, go on with `planner train --resume {folder}`"

    def _note(self, source: str, event: Event) -> None:
        try:
            self._log.write(source, event)
        except OSError as error:  # a full disk: training is worth more than its log
            if not self._log_failed:
                self._log_failed = True
                self._on_event("planner", {"log_failed": f"{self._folder.events}: {error.strerror}"})
        self._on_event(source, event)
