"""The generated part of the reference: a page of every public name, a page of every command.

Sphinx runs it before it builds (see conf.py); `python docs/reference_pages.py FOLDER` writes the pages
anywhere. They are made from the docstrings and the options themselves, so that they cannot be stale.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parent / "reference" / "generated"


def public_names() -> dict[str, dict[str, Any]]:
    """Every public module with its public names: the package itself, then its public modules."""
    import unskew

    return dict(_modules(unskew))


def _modules(module: ModuleType) -> Iterator[tuple[str, dict[str, Any]]]:
    """A module with its public names, then the public modules inside it with theirs."""
    values = {name: getattr(module, name) for name in module.__all__ if not name.startswith("__")}
    inner = {name: value for name, value in values.items() if isinstance(value, ModuleType)}
    yield module.__name__, {name: value for name, value in values.items() if name not in inner}
    for value in inner.values():
        yield from _modules(value)


def members(value: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class that Unskew wrote, in alphabetical order."""
    for name in sorted(dir(value)):
        member = inspect.getattr_static(value, name)
        function = member.fget if isinstance(member, property) else member
        function = getattr(function, "func", getattr(function, "__func__", function))
        ours = str(getattr(function, "__module__", "")).startswith("unskew")
        if not name.startswith("_") and ours and inspect.isfunction(function):
            yield name, member


def api_page() -> str:
    """The page of every public name."""
    parts = ["# Every public name\n\nMade from the docstrings. Examples run in the tests.\n"]
    for module, names in public_names().items():
        intro = inspect.cleandoc(sys.modules[module].__doc__ or "").partition("\n")[0]
        parts.append(f"\n## {module}\n\n{intro}\n")
        for name, value in names.items():
            parts.append(_entry(f"{module}.{name}", value))
    return "".join(parts)


def _entry(path: str, value: Any) -> str:
    name = path.rpartition(".")[2]
    parts = [f"\n### {path}\n"]
    if not callable(value):
        return "".join([*parts, f"\n{_constant(value)}\n"])
    parts.append(
        f"\n```text\n{name}{_signature(value)}\n```\n\n{markdown(inspect.getdoc(value) or '')}\n"
    )
    if inspect.isclass(value) and not issubclass(value, Exception):
        listed = [_member(value, *member) for member in members(value)]
        if listed:
            parts.append("\n**Methods and properties**\n\n" + "\n".join(listed) + "\n")
    return "".join(parts)


def _constant(value: Any) -> str:
    shown = ", ".join(f"`{key}`" for key in value) if hasattr(value, "keys") else f"`{value!r}`"
    return f"A value: {shown}."


def _signature(value: Any) -> str:
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return "(…)"
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", re.sub(r"<[^>]*>", "…", text))
    if len(text) < 90:
        return text
    inside, _, result = text.rpartition(")")
    arguments = re.split(r", (?![^\[\(]*[\]\)])", inside[1:])
    return "(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")" + result


def _member(owner: type, name: str, member: Any) -> str:
    doc = inspect.getdoc(getattr(owner, name, None)) or inspect.getdoc(member) or ""
    first = " ".join(doc.partition("\n\n")[0].split())
    call = "" if isinstance(member, property) or hasattr(member, "attrname") else "()"
    return f"- `{name}{call}`: {first}"


def markdown(doc: str) -> str:
    """A docstring as Markdown: sections in bold, definitions as lists, examples as blocks."""
    lines, out = doc.splitlines(), []
    k = 0
    while k < len(lines):
        line = lines[k]
        under = lines[k + 1].strip() if k + 1 < len(lines) else ""
        if under and set(under) == {"-"}:
            section, k = line.strip(), k + 2
            out += ["", f"**{section}**", ""]
            while (
                k < len(lines) and not _begins_section(lines, k) and not lines[k].startswith(">>>")
            ):
                out.append(_definition(lines[k], section))
                k += 1
        elif line.startswith(">>>"):
            block = []
            while k < len(lines) and lines[k].strip():
                block.append(lines[k])
                k += 1
            out += ["", "```pycon", *block, "```", ""]
        elif line.startswith("    ") and line.strip():
            out += [line]
            k += 1
        else:
            out.append(line)
            k += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip()


def _begins_section(lines: list[str], k: int) -> bool:
    under = lines[k + 1].strip() if k + 1 < len(lines) else ""
    return bool(under) and set(under) == {"-"} and bool(lines[k].strip())


def _definition(line: str, section: str) -> str:
    if section == "Examples" or not line.strip() or line.startswith(" "):
        return line.replace("    ", "  ", 1) if line.startswith("    ") else line
    return f"- `{line.strip()}`:"


def commands_page() -> str:
    """The page of every command with its options."""
    import typer

    from unskew.cli.app import app

    group = typer.main.get_command(app)
    parts = [
        "# Every command and option\n\nMade from the program itself: `unskew COMMAND --help`.\n"
    ]
    for path, command in _commands("unskew", group):
        usage = " ".join(_metavar(p) for p in _arguments(command))
        parts.append(f"\n## {path}\n\n```text\n{path} {usage}\n```\n\n{_help(command)}\n")
        rows = [_option(p) for p in command.params if p.param_type_name == "option"]
        if rows:
            parts.append("\n| option | meaning | default |\n|---|---|---|\n" + "".join(rows))
    return "".join(parts)


def _commands(path: str, group: Any) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(f"{path} {name}", command)
        elif not command.hidden:
            yield f"{path} {name}", command


def _arguments(command: Any) -> list[Any]:
    return [p for p in command.params if p.param_type_name == "argument"]


def _metavar(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    shown = f"{name} …" if parameter.nargs == -1 else name
    return shown if parameter.required else f"[{shown}]"


def _help(command: Any) -> str:
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _option(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    text = " ".join((option.help or "").split()).replace("|", "\\|")
    plain = isinstance(option.default, str | int | float) and not isinstance(option.default, bool)
    default = f"`{option.default}`" if plain else ""
    return f"| {names} | {text} | {default} |\n"


PAGES = {"names.md": api_page, "commands.md": commands_page}


def write_pages(folder: Path = FOLDER) -> None:
    """Write every page into a folder; a page that says the same already is left alone."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        content = page()
        file = folder / name
        if not file.is_file() or file.read_text(encoding="utf-8") != content:
            file.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
