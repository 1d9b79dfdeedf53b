"""The one exception for bad input."""


class UserError(ValueError):
    """Input that cannot be used: one sentence that names the thing and what to do about it.

    The command line prints it without a traceback and exits with code 2.
    """
