"""The OpenAPI document describes the REST interface: a fuzzer that reads it finds no lie."""

from typing import Any

import pytest
import schemathesis
from hypothesis import settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from sparkstorm.testing.control import FakeControl, FakeRegistry
from sparkstorm.ui import make_app

CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]


REGISTRY = FakeRegistry([FakeControl("shop"), FakeControl("hostile", hostile=True)])
APP = make_app(REGISTRY, hosts=["testserver"])
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", APP)


@pytest.mark.sweep
@SCHEMA.parametrize()
@settings(max_examples=max(5, settings().max_examples // 5), deadline=None)
def test_no_request_breaks_the_interface(case: schemathesis.Case[Any]) -> None:
    """Whatever is asked, the answer is one that the document names."""
    if "topology" in case.path_parameters:
        case.path_parameters["topology"] = "hostile-7f3a"
    # The order of a kill makes topologies "not ready", and 503 is the right answer then.
    checks = CHECKS[1:] if case.path == "/readyz" else CHECKS
    case.call_and_validate(checks=checks)
