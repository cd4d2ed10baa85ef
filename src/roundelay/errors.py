"""The error that every complaint about bad input derives from."""


class RoundelayError(ValueError):
    """Base of every error that means the input was bad.

    Its message says what was found, what was expected and what to try, so that it can be
    shown to a user as it stands. Any other exception is a defect in the library.
    """
