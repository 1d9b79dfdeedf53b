"""The exception for bad input, and for settings that lead nowhere."""


class UserError(ValueError):
    """Input that cannot be used: one sentence that names the thing and what to do about it.

    The command line prints it without a traceback and exits with code 2.
    """


class Diverged(UserError):
    """Something became NaN: the same settings would lead there again."""
