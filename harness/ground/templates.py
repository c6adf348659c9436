"""Templates of pages: HTML is escaped, and a name without a value is an error."""

import re
from functools import cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

#: Signs in names of cells, settings and files, after which a line may end.
_JOINT: Final = re.compile(r"([/+,=._])(?=[A-Za-z])")


@cache
def templates_of(package: str) -> Environment:
    """The templates in the folder ``templates`` of a package, by their names; each is compiled once.

    Raises:
        jinja2.TemplateError: of the environment's methods, where a template is wrong or misses a name.
    """
    environment = Environment(
        loader=PackageLoader(package), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["jointed"] = jointed
    return environment


def jointed(name: str) -> Markup:
    """A long name whose lines may end after its signs, and not within its words."""
    return Markup("<wbr>").join(escape(part) for part in _JOINT.sub(r"\1\0", name).split("\0"))
