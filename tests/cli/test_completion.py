"""What shells complete. The scripts have a table of the parser, and start no Python."""

import shutil
import subprocess

import pytest

from lazulite.cli import main
from lazulite.cli.completion import words
from lazulite.cli.parser import build_parser

LINES = {
    "lazulite expo": {"export"},
    "lazulite queue cr": {"create"},
    "lazulite export --fo": {"--format"},
    "lazulite export Orders --format ": {"csv", "plain-csv", "jsonl", "parquet"},
    "lazulite import Orders rows.csv --mode m": {"merge"},
    "lazulite completion --he": {"--help"},
}
"""What stands in a line, and what may complete its last word."""


@pytest.fixture
def script(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", request.param]) == 0
    return capsys.readouterr().out


def test_the_table_has_every_command_and_flag() -> None:
    table = {each.path: each for each in words(build_parser())}
    assert {"export", "import", "queue"} <= set(table[""].commands)
    assert "put" in table["queue"].commands
    assert table["export"].values["--format"] == "csv plain-csv jsonl parquet"
    assert (table["export"].values["-o"], table["export"].values["--filter"]) == ("*", "")
    assert "--tableHost" not in table["serve"].flags, "Azurite's spelling is understood, and not offered"
    assert all("'" not in f"{each}" for row in table.values() for each in (*row.flags, *row.commands))


def complete(shell: str, text: str) -> str:
    """Return a program that prints what a shell completes each line to: a line for each, with blanks between words."""
    if shell == "fish":
        asked = "\n".join(f"echo (complete -C '{line}' | string replace -r '\\t.*' '')" for line in LINES)
        return f"{text}\n{asked}\n"
    empty = '""'  # The word that is not begun.
    lines = [f"COMP_WORDS=({line}{empty if line.endswith(' ') else ''})" for line in LINES]
    if shell == "zsh":  # Its own functions call the one for bash.
        ask = 'words=("${COMP_WORDS[@]}"); CURRENT=${#words}; COMP_CWORD=$((CURRENT - 1)); '
        ask += 'echo $(compgen -F _lazulite -- "${words[-1]}")'
        return "\n".join(("autoload -U compinit && compinit -u -D", text, *(f"{line}; {ask}" for line in lines), ""))
    ask = "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _lazulite; echo ${COMPREPLY[@]}"
    return "\n".join((text, *(f"{line}; {ask}" for line in lines), ""))


@pytest.mark.parametrize(("script", "shell"), [(each, each) for each in ("bash", "zsh", "fish")], indirect=["script"])
def test_a_shell_completes(script: str, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell], input=complete(shell, script), capture_output=True, text=True, check=True)
    assert done.stderr == ""
    for (line, expected), found in zip(LINES.items(), done.stdout.splitlines(), strict=True):
        begun = line.rpartition(" ")[2]  # zsh itself leaves out what does not begin so.
        assert {word for word in found.split() if word.startswith(begun) or shell != "zsh"} == expected
