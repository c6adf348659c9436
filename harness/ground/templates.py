"""Templates of pages: HTML is escaped, and a name without a value is an error."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def templates_of(package: str) -> Environment:
    """The templates in the folder ``templates`` of a package, by their names; each is compiled once.

    Raises:
        jinja2.TemplateError: of the environment's methods, where a template is wrong or misses a name.
    """
    return Environment(
        loader=PackageLoader(package), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
