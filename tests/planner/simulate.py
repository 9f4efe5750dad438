"""An event-driven simulation of workers around one server: the honest check of the closed form.

It shares nothing with the product but the meaning of the demands. Links and processor share their
capacity equally among whoever is there, the lock serves first come first served. A worker computes
(locally or on the server's processor), sends, is served, receives, and begins again.
"""

import random
from collections.abc import Callable, Sequence

#: Stations in the order in which a worker visits them after its delay.
STATIONS = ("link in", "processor", "lock", "link out")
LOCK = 2

Draw = Callable[[random.Random, float], float]


def exponential(source: random.Random, mean: float) -> float:
    """Memoryless service."""
    return source.expovariate(1 / mean) if mean > 0 else 0.0


def deterministic(source: random.Random, mean: float) -> float:
    """The same every time."""
    return mean


def steady(source: random.Random, mean: float) -> float:
    """Gradients as devices take them: 5 % around their mean."""
    return mean * max(0.0, source.gauss(1.0, 0.05))


def simulate(
    demand_s: Sequence[Sequence[float]],
    delay_s: Sequence[float],
    draw: Draw = exponential,
    draw_delay: Draw = exponential,
    duration_s: float = 5000.0,
    seed: int = 0,
) -> list[float]:
    """Mean cycle of each worker. demand_s: (workers, stations); delay_s: (workers,).

    Workers begin anywhere in the time that a cycle takes them alone: who meets whom is left to
    chance.
    """
    source = random.Random(seed)
    workers = range(len(delay_s))
    place = [-1] * len(delay_s)  # -1 is the delay
    left = [(delay + sum(at)) * source.random() for delay, at in zip(delay_s, demand_s, strict=True)]
    queue: list[int] = []
    cycles = [0] * len(delay_s)
    now = 0.0
    while now < duration_s:
        speed = _speeds(place, queue)
        elapsed, who = min((left[i] / speed[i], i) for i in workers if speed[i] > 0)
        now += elapsed
        for i in workers:
            left[i] -= elapsed * speed[i]
        if place[who] == LOCK:
            queue.pop(0)
        place[who] += 1
        if place[who] == len(STATIONS):
            cycles[who] += 1
            place[who] = -1
        if place[who] == LOCK:
            queue.append(who)
        if place[who] < 0:
            left[who] = draw_delay(source, delay_s[who])
        else:
            left[who] = draw(source, demand_s[who][place[who]])
    return [now / count for count in cycles]


def _speeds(place: list[int], queue: list[int]) -> list[float]:
    speeds = []
    for i, station in enumerate(place):
        if station < 0:
            speeds.append(1.0)
        elif station == LOCK:
            speeds.append(1.0 if queue[0] == i else 0.0)
        else:
            speeds.append(1 / place.count(station))
    return speeds
