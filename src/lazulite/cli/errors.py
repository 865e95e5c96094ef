"""The error of a command."""


class CommandError(Exception):
    """A command failed. The text is one line for the user, without secrets; `exit_code` is the command's."""

    def __init__(self, reason: object, exit_code: int = 1) -> None:
        super().__init__(" ".join(str(reason).split()))
        self.exit_code = exit_code
