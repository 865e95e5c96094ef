"""Why a command cannot do what it was asked."""


class Refusal(Exception):  # noqa: N818 - it is no error of ours.
    """One line for the user, without secrets, and the exit code that goes with it."""

    def __init__(self, reason: object, exit_code: int = 1) -> None:
        super().__init__(" ".join(str(reason).split()))
        self.exit_code = exit_code
