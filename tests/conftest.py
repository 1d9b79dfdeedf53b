"""64 bits, and a hypothesis profile that is the same on every machine."""

import gc

import hypothesis
import jax
import pytest

# Tests look into what runs in 64 bits; that our calls see to it themselves, and leave a program in
# 32 bits as it is, is tested in processes of its own (test_training).
jax.config.update("jax_enable_x64", True)

hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, max_examples=100)
hypothesis.settings.load_profile("ci")


@pytest.fixture(autouse=True, scope="module")
def compiled_programs_are_let_go():
    """Each program that is compiled has mappings of memory of its own, and a process may have
    65,530: a worker that ran through all the tests came near that, and ended in the compiler."""
    yield
    jax.clear_caches()
    gc.collect()
