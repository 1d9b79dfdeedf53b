"""The networks of a run under way, without what it practised: small enough to keep.

    python tools/slim_checkpoint.py RUN/checkpoint.safetensors OUT/networks.safetensors

`understudy expert ENV --begin OUT/networks.safetensors` goes on with them.
"""

import sys
from pathlib import Path

from understudy.learners.deep import checkpoint

checkpoint.slim(Path(sys.argv[1]), Path(sys.argv[2]))
