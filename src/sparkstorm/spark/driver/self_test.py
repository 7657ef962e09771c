"""Check that the running Spark fits a plan: its private parts, once for each build.

Its settings.
"""

import pydoc
from collections.abc import Sequence
from typing import Any

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from sparkstorm.errors import ConfigError, EnvironmentFault
from sparkstorm.planning.plan import Plan
from sparkstorm.spark.internals import NEEDS, gateway_of
from sparkstorm.spark.needs import Need, Vital
from sparkstorm.texts.logs import logger_of

__all__ = ["check_conf", "check_spark", "judge", "missing"]

_logger = logger_of(__name__)

_FOUND: dict[str, tuple[Need, ...]] = {}
"""The missing parts, by the build of Spark."""


def check_spark(session: SparkSession, plan: Plan) -> None:
    """Check that Spark can keep the plan's guarantee; warn of features that are missing.

    Raises:
        EnvironmentFault: a private part is missing, so the topology's results could be wrong.
        ConfigError: a setting forbids roll-backs, and the plan may need one.
    """
    build = _build(session.sparkContext)
    if build not in _FOUND:
        _FOUND[build] = missing(session.sparkContext, NEEDS)
    judge(_FOUND[build], plan, build)
    check_conf(session.sparkContext.getConf(), plan)


def check_conf(conf: SparkConf, plan: Plan) -> None:
    """Check that Spark's settings allow the plan's guarantee.

    Raises:
        ConfigError: the plan may roll a batch back, and Spark could not forget the batch's outputs.
    """
    tracking = conf.get("spark.cleaner.referenceTracking", "true") or "true"
    if plan.rolls_back and tracking.lower() == "false":
        raise ConfigError(
            "spark.cleaner.referenceTracking=false: a batch could not be rolled back, which a "
            "topology with state, or processing.guarantee exactly-once, may need. Leave that "
            "setting out"
        )


def missing(context: SparkContext, needs: Sequence[Need]) -> tuple[Need, ...]:
    """Return the needs that the running Spark does not meet."""
    java = gateway_of(context)
    return tuple(
        need for need in needs if not (_has(java, need) if need.is_java else _knows(context, need))
    )


def judge(lacking: Sequence[Need], plan: Plan, build: str) -> None:
    """Refuse a topology whose results depend on a missing part; warn of other missing parts.

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
    """Name the build. A vendor's build has Spark's version number, but another revision."""
    try:
        revision = str(gateway_of(context).jvm.org.apache.spark.SparkBuildInfo.spark_revision())
    except (Py4JError, TypeError):
        revision = "of unknown revision"
    return f"{context.version} {revision[:12]}"


def _knows(context: SparkContext, need: Need) -> bool:
    """Whether PySpark has an attribute: of a class, or set in the class's ``__init__``."""
    owner = pydoc.locate(need.owner)
    if owner is SparkContext:
        return hasattr(context, need.name)
    makes = getattr(getattr(owner, "__init__", None), "__code__", None)
    return hasattr(owner, need.name) or (makes is not None and need.name in makes.co_names)


def _has(gateway: Any, need: Need) -> bool:
    """Whether the JVM has a class, and a public method of the class."""
    jvm = gateway.jvm
    try:
        owner = jvm.java.lang.Class.forName(need.owner)
        if need.name:
            types = gateway.new_array(jvm.java.lang.Class, len(need.takes))
            for index, name in enumerate(need.takes):
                types[index] = _class(jvm, name)
            owner.getMethod(need.name, types)
    except Py4JError:
        return False
    return True


def _class(jvm: Any, name: str) -> Any:
    """Return Java's class of a type; ``[B`` is an array of bytes."""
    primitive = {"int": "Integer", "boolean": "Boolean"}.get(name)
    if primitive is not None:
        return getattr(jvm.java.lang, primitive).TYPE
    return jvm.java.lang.Class.forName(name)
