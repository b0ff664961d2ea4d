"""Tab completion of `specfit <command> key=value`: a script that a shell evaluates.

Hydra completes a script by running it, a second and more for every key pressed; the groups and keys
are known beforehand, so the script holds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specfit.base.config import declared
from specfit.base.paths import CONF

BASH = """_specfit() {{
    local line="${{COMP_LINE:0:COMP_POINT}}"
    local word="${{line##* }}"
    local words="{words}"
    [ "$COMP_CWORD" -le 1 ] && words="{commands}"
    COMPREPLY=( $(compgen -W "$words" -- "$word") )
    # Readline splits at `=`: what stands before it is there already.
    case "$word" in
        *=*) COMPREPLY=( "${{COMPREPLY[@]#"${{word%%=*}}="}}" ) ;;
        *) [ "${{#COMPREPLY[@]}}" -gt 0 ] && [ "$COMP_CWORD" -gt 1 ] && compopt -o nospace ;;
    esac
}}
complete -F _specfit specfit"""
ZSH = "autoload -U +X compinit bashcompinit && compinit && bashcompinit\n"


def script_of(shell: str, commands: Sequence[str]) -> str:
    """For bash, or for zsh through its bashcompinit."""
    script = BASH.format(words=" ".join(words()), commands=" ".join(commands))
    return (ZSH if shell == "zsh" else "") + script


def words() -> Iterator[str]:
    """Every `group=choice`, `key=word` and `key=`, and the flags."""
    yield from ("--help", "--cfg", "--multirun")
    for name, choices in groups().items():
        yield from (f"{name}={choice}" for choice in choices)
    for name, item in declared():
        if not item.metadata or name in groups():
            continue
        allowed = item.metadata["one_of"] or (("true", "false") if item.type in BOOLEANS else ())
        yield from (f"{name}={word}" for word in allowed)
        if not allowed or item.metadata["numbers"]:
            yield f"{name}="


BOOLEANS = ("bool", "bool | None")


def groups() -> dict[str, list[str]]:
    """Config group -> its choices, as conf/ has them."""
    folders = [folder for folder in sorted(CONF.rglob("*")) if any(folder.glob("*.yaml"))]
    return {
        str(folder.relative_to(CONF)): sorted(path.stem for path in folder.glob("*.yaml"))
        for folder in folders
    }
