"""Whether the Spark that runs has the private parts that we lean on; found out once per build."""

import pydoc
from collections.abc import Sequence
from typing import Any

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from sparkstorm.errors import EnvironmentFault
from sparkstorm.planning.plan import Plan
from sparkstorm.spark.internals import NEEDS, Need, Vital, gateway_of
from sparkstorm.texts.logs import logger_of

__all__ = ["check_internals", "judge", "missing"]

_logger = logger_of(__name__)

_FOUND: dict[str, tuple[Need, ...]] = {}
"""What is missing, by the build of Spark."""


def check_internals(session: SparkSession, plan: Plan) -> None:
    """Say what a topology must do without on this Spark.

    Raises:
        EnvironmentFault: its results could be wrong.
    """
    build = _build(session.sparkContext)
    if build not in _FOUND:
        _FOUND[build] = missing(session.sparkContext, NEEDS)
    judge(_FOUND[build], plan, build)


def missing(context: SparkContext, needs: Sequence[Need]) -> tuple[Need, ...]:
    """Return those that this Spark does not have."""
    java = gateway_of(context)
    return tuple(
        need for need in needs if not (_has(java, need) if need.is_java else _knows(context, need))
    )


def judge(lacking: Sequence[Need], plan: Plan, build: str) -> None:
    """Refuse a topology that needs what is missing for its results; warn of the rest.

    Raises:
        EnvironmentFault: the topology is refused.
    """
    vital = {Vital.ALL}
    if plan.rolls_back:
        vital.add(Vital.STATE)
    refused = [need for need in lacking if need.vital in vital]
    if refused:
        raise EnvironmentFault(
            f"this build of Spark ({build}) differs from the one that sparkstorm was made for, "
            f"and results could be wrong: {_told(refused)}. Use PySpark {pyspark.__version__} as "
            f"it is on PyPI"
        )
    if lacking:
        _logger.warning(
            "this build of Spark (%s) differs from the one that sparkstorm was made for: %s",
            build,
            _told(lacking),
        )


def _told(needs: Sequence[Need]) -> str:
    return "; ".join(f"{need} is missing ({need.without})" for need in needs)


def _build(context: SparkContext) -> str:
    """Name the build: a vendor's has the number of a version, but another revision."""
    try:
        revision = str(gateway_of(context).jvm.org.apache.spark.SparkBuildInfo.spark_revision())
    except (Py4JError, TypeError):
        revision = "of unknown revision"
    return f"{context.version} {revision[:12]}"


def _knows(context: SparkContext, need: Need) -> bool:
    """Whether PySpark has an attribute: a class, or what its objects are made with."""
    owner = pydoc.locate(need.owner)
    if owner is SparkContext:
        return hasattr(context, need.name)
    makes = getattr(getattr(owner, "__init__", None), "__code__", None)
    return hasattr(owner, need.name) or (makes is not None and need.name in makes.co_names)


def _has(gateway: Any, need: Need) -> bool:
    """Whether the JVM has a class, and a public method of it."""
    jvm = gateway.jvm
    try:
        owner = jvm.java.lang.Class.forName(need.owner)
        if need.name:
            types = gateway.new_array(jvm.java.lang.Class, len(need.takes))
            for index, name in enumerate(need.takes):
                types[index] = _PRIMITIVES[name](jvm)
            owner.getMethod(need.name, types)
    except Py4JError:
        return False
    return True


_PRIMITIVES = {
    "int": lambda jvm: jvm.java.lang.Integer.TYPE,
    "boolean": lambda jvm: jvm.java.lang.Boolean.TYPE,
}
