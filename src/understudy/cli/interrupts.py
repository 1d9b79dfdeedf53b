"""Ctrl-C is heard at every moment, also where Python cannot hear it.

Python raises KeyboardInterrupt between two of its own instructions: not while a program is being
compiled, and where it is raised inside a callback of an import, it is lost. So a thread listens as
well, to the byte that the system's own handler writes, and ends what has not ended by itself.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

PATIENCE = 5.0  # seconds for the usual way out: workers are ended, what was made is taken away
STOPPED = "understudy: stopped."


@contextlib.contextmanager
def heard() -> Iterator[None]:
    """Until this ends, Ctrl-C ends the process: by KeyboardInterrupt, or else after PATIENCE."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    heard, told = os.pipe()
    os.set_blocking(told, False)
    over = threading.Event()
    before = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    threading.Thread(target=_listen, args=(heard, over), daemon=True).start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        os.close(told)  # which the listener takes as the end


def _listen(heard: int, over: threading.Event) -> None:
    while byte := os.read(heard, 1):
        # Where whoever started us asked to ignore Ctrl-C, as a shell does in the background, there
        # is no handler, and so no byte.
        if byte[0] == signal.SIGINT and not over.wait(PATIENCE):
            with contextlib.suppress(OSError):
                os.write(2, f"{STOPPED}\n".encode())
            os._exit(130)
    os.close(heard)
