"""A walk over a user's folders, also over links, visits each real one once, and has an end."""

import os
from typing import Iterator, List, Set, Tuple

#: A folder that is deeper, or has more in it, is not what was meant.
MOST_DEEP, MOST_ENTRIES = 64, 10000000


def files_in(folder: str) -> Iterator[str]:
    """Paths of what is in a folder and is no folder, in the order of their names.

    Hidden entries are passed over, and of several ways to a folder the first counts.
    Raises OSError for what cannot be read, ValueError for too many entries or folders in folders.
    """
    seen: Set[Tuple[int, int]] = set()
    waiting, entries = [(folder, 0)], 0
    while waiting:
        path, depth = waiting.pop()
        found = os.stat(path)
        if (found.st_dev, found.st_ino) in seen:
            continue
        seen.add((found.st_dev, found.st_ino))
        if depth > MOST_DEEP:
            raise ValueError("%s is more than %d folders deep; name the folder of the data alone" % (path, MOST_DEEP))
        names = sorted(name for name in os.listdir(path) if not name.startswith("."))
        entries += len(names)
        if entries > MOST_ENTRIES:
            raise ValueError("%s has more than %d entries; name the folder of the data alone" % (folder, MOST_ENTRIES))
        inner: List[Tuple[str, int]] = []
        for name in names:
            each = os.path.join(path, name)
            if os.path.isdir(each):
                inner.append((each, depth + 1))
            else:
                yield each
        waiting.extend(reversed(inner))
