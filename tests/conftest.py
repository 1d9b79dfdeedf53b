"""64 bits, and a hypothesis profile that is the same on every machine."""

import hypothesis
import jax

# Tests look into what runs in 64 bits; that our calls see to it themselves, and leave a program in
# 32 bits as it is, is tested in processes of its own (test_training).
jax.config.update("jax_enable_x64", True)

hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, max_examples=100)
hypothesis.settings.load_profile("ci")
