"""Pages of all public classes and functions, from docstrings."""

import inspect
import re
import sys
import textwrap

import gnr_keras
from gnr_keras import continuing
from gnr_keras import gin_reference
from gnr_keras import profiling
from gnr_keras import progress
from gnr_keras import tensorboard

_INTRODUCTION = """\
# API reference

Every class and function that `import gnr_keras` brings, and those of its
modules, a page each. These pages are made from the docstrings by

    python scripts/api_page.py --output=docs/api

What a class takes over from Keras (`call`, `get_config` and the like) is left
out. Values that gin files can set are in [gin.md](../gin.md).
"""
# Modules that `import gnr_keras` does not bring, since they need gin or other
# packages, or belong to scripts.
_MORE_MODULES = (continuing, profiling, progress, tensorboard)
# Sections of a docstring that describe one name a paragraph, and others.
_LISTS = ("Args", "Attributes", "Raises")
_SECTIONS = (*_LISTS, "Returns", "Yields", "Reference", "Example")
_WIDTH = 80


def make_pages():
    """Returns the pages as Markdown, by the names of their files."""
    contents = []
    pages = {}
    for place, names in public_names().items():
        file_name = f"{place.removeprefix('gnr_keras.')}.md"
        listed = ", ".join(f"`{name}`" for name in names)
        contents.append(f"- [`{place}`]({file_name}): {listed}")
        lines = [
            f"# `{place}`",
            "",
            _render_text(sys.modules[place].__doc__),
            "",
        ]
        for name, it in names.items():
            lines += _describe(f"{place}.{name}", it)
        pages[file_name] = "\n".join(lines)
    # The name that GitHub shows where a folder is opened.
    return {"README.md": "\n".join([_INTRODUCTION, *contents, ""]), **pages}


def public_names():
    """Returns the public classes and functions, by module and name."""
    exported = {name: getattr(gnr_keras, name) for name in gnr_keras.__all__}
    modules = [it for it in exported.values() if inspect.ismodule(it)]
    at_top = {
        name: it for name, it in exported.items() if not inspect.ismodule(it)
    }
    return {
        "gnr_keras": at_top,
        **{
            module.__name__: _names_of(module)
            for module in [*modules, *_MORE_MODULES]
        },
    }


def public_members(kind):
    """Returns the methods and properties of a class that are its own, by name.

    Those that Keras or Python define too are left out, unless they have a
    docstring here.

    Args:
        kind: a class of this package.
    """
    own = [base for base in inspect.getmro(kind) if _is_ours(base)]
    others = [base for base in inspect.getmro(kind) if not _is_ours(base)]
    members = {}
    for base in own:
        for name, member in vars(base).items():
            if name.startswith("_") or name in members:
                continue
            known = any(hasattr(other, name) for other in others)
            if _is_member(member) and (_doc_of(member) or not known):
                members[name] = member
    return members


def describe_member(kind, name, member):
    """Returns the docstring of a member, its own or that of a base class.

    Args:
        kind: the class.
        name: name of the member.
        member: what `public_members` returned.
    """
    bases = [b for b in inspect.getmro(kind) if _is_ours(b) and name in vars(b)]
    docs = [_doc_of(member), *(_doc_of(vars(base)[name]) for base in bases)]
    return next((inspect.cleandoc(doc) for doc in docs if doc), None)


def _names_of(module):
    names = getattr(module, "__all__", None) or list(vars(module))
    found = {name: getattr(module, name) for name in names}
    return {
        name: it
        for name, it in found.items()
        if not name.startswith("_")
        and (inspect.isclass(it) or inspect.isfunction(it))
        and it.__module__.startswith(module.__name__)
    }


def _is_ours(kind):
    return kind.__module__.split(".")[0] == "gnr_keras"


def _is_member(member):
    wrapped = isinstance(member, classmethod | staticmethod | property)
    return wrapped or inspect.isfunction(member)


def _doc_of(member):
    return getattr(member, "__doc__", None)


def _describe(path, it):
    lines = [f"## `{path}`", "", "```py"]
    lines += [_format_call(path, it), "```", ""]
    meanings = gin_reference.describe_parameters(it)
    lines += [_render_text(inspect.getdoc(it), meanings), ""]
    if inspect.isclass(it):
        for name, member in public_members(it).items():
            doc = describe_member(it, name, member)
            lines += [f"### `{name}`", ""]
            if not isinstance(member, property):
                function = getattr(member, "__func__", member)
                unbound = not isinstance(member, staticmethod)
                call = _format_call(name, function, unbound)
                lines += ["```py", call, "```", ""]
            lines += [_render_text(doc), ""]
    return lines


def _format_call(path, it, is_method=False):
    """A call with all arguments and defaults, in one line where it fits."""
    parameters = _parameters_of(it)
    parts, marked = [], False
    for parameter in parameters[1:] if is_method else parameters:
        if parameter.kind == parameter.VAR_POSITIONAL:
            parts.append(f"*{parameter.name}")
            marked = True
        elif parameter.kind == parameter.VAR_KEYWORD:
            parts.append(f"**{parameter.name}")
        else:
            if parameter.kind == parameter.KEYWORD_ONLY and not marked:
                parts.append("*")
                marked = True
            default = ""
            if parameter.default is not parameter.empty:
                default = f"={_format_default(parameter.default)}"
            parts.append(parameter.name + default)
    line = f"{path}({', '.join(parts)})"
    if len(line) <= _WIDTH:
        return line
    arguments = "".join(f"    {part},\n" for part in parts)
    return f"{path}(\n{arguments})"


def _parameters_of(it):
    if inspect.isclass(it) and issubclass(it, Exception):
        return []  # They take what Python's own do.
    return list(inspect.signature(it).parameters.values())


def _format_default(default):
    if inspect.isclass(default) or inspect.isroutine(default):
        return default.__name__
    text = repr(default)
    if text == "<factory>":  # That of a dataclass.
        return "..."
    # Objects without a text of their own say where they lie in memory.
    return f"{type(default).__name__}()" if " at 0x" in text else text


def _render_text(doc, meanings=None):
    """Markdown of a docstring, whose sections become lists.

    Args:
        doc: the docstring, without indentation.
        meanings: what to say of names instead, where it is known.
    """
    headings = "|".join(_SECTIONS)
    parts = re.split(rf"^({headings}):\n", doc, flags=re.MULTILINE)
    lines = [parts[0].strip()]
    for heading, body in zip(parts[1::2], parts[2::2], strict=True):
        body = textwrap.dedent(body).strip()
        lines += ["", f"*{heading}:*", ""]
        if heading in _LISTS:
            entries = re.split(r"^(\*{0,2}\w+): ", body, flags=re.MULTILINE)
            for name, text in zip(entries[1::2], entries[2::2], strict=True):
                text = (meanings or {}).get(name) or " ".join(text.split())
                lines.append(f"- `{name}`: {text}")
        else:
            # Sessions of Python are code, which needs a fence here.
            body = re.sub(
                r"^>>>.*(?:\n.+)*", r"```py\n\g<0>\n```", body, flags=re.M
            )
            lines.append(body.replace("```python", "```py"))
    return "\n".join(lines)
