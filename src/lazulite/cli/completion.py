"""`lazulite completion`: print a script by which a shell completes commands, flags and their values.

The script has a table, made from the parser: a line for each command, with its subcommands, its flags, and the values
of each flag that has a fixed choice. So a shell completes without starting Python.
"""

from argparse import Action, ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lazulite.cli.parser import build_parser

_FILES = ("FILE", "DIR", "PATH", "DEST", "SOURCE", "STORE")
"""The names of values in help that are files or directories."""


class CommandSyntax(NamedTuple):
    """What may follow a command."""

    path: str
    """The words of the command, such as `queue put`; "" for the program."""
    commands: tuple[str, ...]
    flags: tuple[str, ...]
    """Without those of old spellings."""
    values: Mapping[str, str]
    """By flag: the choices of its value, with blanks between them; `*`: files; "": anything."""


def words(parser: ArgumentParser, path: str = "") -> Iterator[CommandSyntax]:
    """Yield what may follow a parser's command, and what may follow its subcommands."""
    commands: dict[str, ArgumentParser] = {}
    values = {}
    flags: list[str] = []
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            commands = dict(action.choices)
            continue
        shown = [flag for flag in action.option_strings if flag == flag.lower() and flag.startswith("--")]
        flags += shown
        if action.nargs != 0:
            values.update(dict.fromkeys(action.option_strings, _value(action)))
    yield CommandSyntax(path, tuple(commands), tuple(flags), values)
    for name, each in commands.items():
        yield from words(each, f"{path} {name}".strip())


def _value(action: Action) -> str:
    if action.choices is not None:
        return " ".join(map(str, action.choices))
    return "*" if action.metavar in _FILES else ""


def run(args: Namespace, _: Mapping[str, str]) -> int:
    """Print the script for a shell."""
    print(_SCRIPTS[args.shell](list(words(build_parser()))), end="")
    return 0


def _bash(table: list[CommandSyntax]) -> str:
    lines = [f"    [{_quoted(path)}]={_quoted(' '.join((*commands, *flags)))}" for path, commands, flags, _ in table]
    values = [
        f"    [{_quoted(f'{path} {flag}'.strip())}]={_quoted(value)}"
        for path, _, _, found in table
        for flag, value in found.items()
    ]
    commands = [_quoted(f"{each.path} {command}".strip()) for each in table for command in each.commands]
    return _BASH.format(words="\n".join(lines), values="\n".join(values), commands=" ".join(commands))


_BASH = """\
# Completion of lazulite for bash: eval "$(lazulite completion bash)"
declare -gA _lazulite_words=(
{words}
)
declare -gA _lazulite_values=(
{values}
)
declare -gA _lazulite_commands=()
for _lazulite_each in {commands}; do _lazulite_commands[$_lazulite_each]=1; done
unset _lazulite_each

_lazulite() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command="" at next key
    for ((at = 1; at < COMP_CWORD; at++)); do
        next=${{command:+$command }}${{COMP_WORDS[at]}}
        [[ -n ${{_lazulite_commands[$next]-}} ]] && command=$next
    done
    key=${{command:+$command }}$before
    if [[ $before == -* && -n ${{_lazulite_values[$key]+set}} ]]; then
        case ${{_lazulite_values[$key]}} in
            "*") COMPREPLY=($(compgen -f -- "$current")) ;;
            *) COMPREPLY=($(compgen -W "${{_lazulite_values[$key]}}" -- "$current")) ;;
        esac
        return
    fi
    COMPREPLY=($(compgen -W "${{_lazulite_words[${{command:- }}]-}}" -- "$current"))
    if [[ $current != -* && ${{#COMPREPLY[@]}} == 0 ]]; then
        COMPREPLY=($(compgen -f -- "$current"))
    fi
}}
complete -o filenames -F _lazulite lazulite
"""


def _zsh(table: list[CommandSyntax]) -> str:
    return f"""\
#compdef lazulite
# Completion of lazulite for zsh: eval "$(lazulite completion zsh)", behind compinit.
autoload -U +X bashcompinit && bashcompinit
{_bash(table).partition(chr(10))[2].replace("declare -gA", "typeset -gA")}"""


def _fish(table: list[CommandSyntax]) -> str:
    lines = ["# Completion of lazulite for fish: lazulite completion fish | source", _FISH]
    for path, commands, flags, values in table:
        if commands:
            lines.append(f"complete -c lazulite -f -n '__lazulite_at {path}' -a '{' '.join(commands)}'")
        condition = f"__lazulite_in {path}" if path else "__lazulite_at"
        for flag in flags:
            value = values.get(flag)
            needs = "" if value is None else " -r -F" if value == "*" else f" -x -a '{value}'" if value else " -x"
            lines.append(f"complete -c lazulite -n '{condition}' -l {flag.removeprefix('--')}{needs}")
    return "\n".join(lines) + "\n"


_FISH = """\
function __lazulite_command
    for word in (commandline -opc)[2..-1]
        string match -q -- '-*' $word; and break
        echo $word
    end
end
function __lazulite_at
    set -l path (__lazulite_command)
    test "$path" = "$argv"
end
function __lazulite_in
    set -l path (__lazulite_command)
    set -l count (count $argv)
    test (count $path) -ge $count; and test "$path[1..$count]" = "$argv"
end"""


def _quoted(text: str) -> str:
    """Return a text between apostrophes; no name has one. An empty one has a blank, as bash takes no empty key."""
    return f"'{text or ' '}'"


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
