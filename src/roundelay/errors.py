"""The error that every complaint about bad input derives from."""


class RoundelayError(ValueError):
    """Base of every error that means the input was bad.

    Its message says what was found, what was expected and what to try, so that it can be
    shown to a user as it stands. Any other exception is a defect in the library.
    """


class NotBuilt(RoundelayError):
    """The native core is not there, and something needs it."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the native core is not built, so {what}; expected roundelay._native. Build it with "
            "a C++20 compiler: pip install ."
        )


class ExchangeError(RoundelayError, RuntimeError):
    """An exchange between ranks went wrong; the communicator cannot be used any more.

    Programs for torch.distributed catch RuntimeError there, so it is one as well.

    `Communicator.last_calls` still tells which calls were made, and which was under way.

    Attributes:
        rank: whose fault it is, or -1.
    """

    def __init__(self, text: str, rank: int = -1) -> None:
        super().__init__(text)
        self.rank = rank


class PeerLost(ExchangeError):
    """A rank has ended while others exchange data with it."""


class CallsDiffer(ExchangeError):
    """Ranks made different calls: another collective, size, type, operation or order."""


class TooLate(ExchangeError):
    """A rank has not come for as long as the communicator's `timeout` allows."""


class Interrupted(ExchangeError):
    """A rank was interrupted in the middle of an exchange."""


class BytesChanged(ExchangeError):
    """A check sum differs: bytes are not those that were sent. See ROUNDELAY_CHECKSUM."""


class Broken(ExchangeError):
    """The exchange failed here or elsewhere."""
