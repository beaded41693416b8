"""Signatures that `help()` and `inspect` show of functions whose parameters are declared elsewhere."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
Result = TypeVar("Result")


def with_keywords_of(arguments: type) -> Callable[[Callable[P, Result]], Callable[P, Result]]:
    """Show the keys of a `TypedDict` in place of `**keywords`; each is annotated with type and default."""
    keywords = [
        Parameter(
            name, Parameter.KEYWORD_ONLY, default=annotated.__metadata__[0], annotation=annotated.__origin__
        )
        for name, annotated in arguments.__annotations__.items()
    ]

    def decorate(function: Callable[P, Result]) -> Callable[P, Result]:
        own = signature(function)
        named = [
            parameter for parameter in own.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD
        ]
        function.__dict__["__signature__"] = own.replace(parameters=[*named, *keywords])
        return function

    return decorate


def with_parameters_of(source: Callable[P, Any]) -> Callable[[Callable[..., Result]], Callable[P, Result]]:
    """Show the parameters of `source` in place of `*arguments` and `**keywords`, which are passed to it.

    What the docstring of `source` says below its first line is added to that of the function.
    """

    def decorate(function: Callable[..., Result]) -> Callable[P, Result]:
        returned = signature(function).return_annotation
        function.__dict__["__signature__"] = signature(source).replace(return_annotation=returned)
        _, _, details = (source.__doc__ or "").partition("\n")
        function.__doc__ = f"{function.__doc__}\n{details}"
        return function

    return decorate
