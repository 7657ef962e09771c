"""The REST interface: Storm's fields for Storm's tools, ours for messages and letters."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from sparkstorm.testing import ManualClock
from sparkstorm.testing.control import FakeControl, FakeRegistry
from sparkstorm.ui import make_app
from sparkstorm.ui.answers import Answer

API = "/api/v1"
SHOP = f"{API}/topology/shop-7f3a"


def got(client: TestClient, path: str) -> Any:
    response = client.get(path)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    return response.json()


# --- Storm's -------------------------------------------------------------------------------------

CLUSTER = (
    "stormVersion supervisors topologies slotsTotal slotsUsed slotsFree executorsTotal tasksTotal "
    "totalMem totalCpu availMem availCpu memAssignedPercentUtil cpuAssignedPercentUtil "
    "schedulerDisplayResource user"
)
ROW = (
    "id encodedId owner name status uptime uptimeSeconds tasksTotal workersTotal executorsTotal "
    "replicationCount schedulerInfo requestedMemOnHeap requestedMemOffHeap requestedTotalMem "
    "requestedCpu requestedGenericResources assignedMemOnHeap assignedMemOffHeap assignedTotalMem "
    "assignedCpu assignedGenericResources topologyVersion stormVersion"
)
PAGE = (
    ROW + " window windowHint msgTimeout debug samplingPct configuration visualizationTable "
    "topologyStats workers spouts bolts"
)
WORKER = (
    "supervisorId host port topologyId topologyName executorsTotal assignedMemOnHeap "
    "assignedMemOffHeap assignedCpu componentNumTasks uptime uptimeSeconds workerLogLink owner"
)
STATS = "windowPretty window emitted transferred completeLatency acked failed"
SPOUT = (
    "spoutId encodedSpoutId executors tasks emitted transferred completeLatency acked failed "
    "lastError errorHost errorPort errorTime errorLapsedSecs errorWorkerLogLink"
)
BOLT = (
    "boltId encodedBoltId executors tasks emitted transferred capacity executeLatency executed "
    "processLatency acked failed lastError errorHost errorPort errorTime errorLapsedSecs "
    "errorWorkerLogLink"
)
COMPONENT = (
    "user id encodedId name executors tasks componentType topologyId encodedTopologyId "
    "topologyStatus window windowHint debug samplingPct eventLogLink profilingAndDebuggingCapable "
    "profileActionEnabled profilerActive componentErrors outputStats executorStats"
)
BOLT_STATS = (
    "window windowPretty emitted transferred executeLatency executed processLatency capacity acked "
    "failed"
)
INPUT = "component encodedComponentId stream executeLatency processLatency executed acked failed"
EXECUTOR = (
    "id encodedId uptime uptimeSeconds host port emitted transferred acked failed workerLogLink"
)


def assert_has(answer: dict[str, Any], *names: str) -> None:
    """All of Storm's fields are there."""
    wanted = {name for one in names for name in one.split()}
    assert wanted - set(answer) == set()


def test_the_cluster_has_storms_fields(reader: TestClient) -> None:
    """The cluster is the drivers of this machine."""
    cluster = got(reader, f"{API}/cluster/summary")
    assert_has(cluster, CLUSTER)
    assert cluster["topologies"] == 2
    (driver,) = got(reader, f"{API}/supervisor/summary")["supervisors"]
    assert driver["slotsUsed"] == 2
    (nimbus,) = got(reader, f"{API}/nimbus/summary")["nimbuses"]
    assert_has(nimbus, "host port nimbusLogLink status version nimbusUpTime nimbusUpTimeSeconds")
    assert nimbus["status"] == "Leader"


def test_tools_that_compare_versions_find_a_number(reader: TestClient) -> None:
    """It is that of the Storm whose REST this is."""
    cluster = got(reader, f"{API}/cluster/summary")
    assert [part.isdigit() for part in cluster["stormVersion"].split(".")] == [True] * 3
    assert cluster["sparkstormVersion"]


def test_any_window_is_covered(reader: TestClient) -> None:
    """Tools ask for a minute, or for an hour, as Storm lets them."""
    for asked, window in (("60", "600"), ("3600", "10800"), ("1000000", ":all-time")):
        assert got(reader, f"{SHOP}?window={asked}")["window"] == window
        assert got(reader, f"{SHOP}/metrics?window={asked}")["window"] == window


def test_the_cluster_shows_no_secrets(registry: FakeRegistry) -> None:
    """A driver masks its settings; the page does not rely on that."""
    shop = registry.controls["shop-7f3a"]
    shop.topology().config["db"] = {"password": "open sesame"}
    client = TestClient(make_app(registry), base_url="http://localhost")
    for path in (SHOP, f"{SHOP}/configuration", "/topologies/shop-7f3a/configuration"):
        response = client.get(path)
        assert response.status_code == 200
        assert "open sesame" not in response.text
        assert "kafka.bootstrap.servers" in response.text


def test_topologies_have_storms_fields(reader: TestClient) -> None:
    """As a list, and each with its spouts and bolts."""
    rows = got(reader, f"{API}/topology/summary")["topologies"]
    assert [row["id"] for row in rows] == ["shop-7f3a", "hostile-7f3a"]
    assert_has(rows[0], ROW)
    page = got(reader, f"{SHOP}?window=600")
    assert_has(page, PAGE)
    assert [one["window"] for one in page["topologyStats"]] == [
        "600",
        "10800",
        "86400",
        ":all-time",
    ]
    assert_has(page["topologyStats"][0], STATS)
    assert_has(page["workers"][0], WORKER)
    assert_has(page["spouts"][0], SPOUT)
    assert_has(page["bolts"][0], BOLT)
    assert (page["window"], page["windowHint"]) == ("600", "10m 0s")
    enrich = next(one for one in page["bolts"] if one["boltId"] == "enrich")
    assert float(enrich["capacity"]) == pytest.approx(0.847, abs=0.001)
    assert enrich["executeLatency"] == "6.200"
    assert enrich["lastError"].endswith("has no price")
    assert 0 <= enrich["errorLapsedSecs"] < 60
    assert page["bolts"][0]["errorLapsedSecs"] is None


def test_a_bolt_has_storms_fields(reader: TestClient) -> None:
    """By window, stream and task."""
    bolt = got(reader, f"{SHOP}/component/enrich?window=600")
    assert_has(bolt, COMPONENT, "boltStats inputStats")
    assert_has(bolt["boltStats"][0], BOLT_STATS)
    assert_has(bolt["inputStats"][0], INPUT)
    assert_has(
        bolt["executorStats"][0], EXECUTOR, "capacity executeLatency executed processLatency"
    )
    assert [one["id"] for one in bolt["executorStats"]] == ["[6-6]", "[7-7]", "[8-8]"]
    assert "has no price" in bolt["componentErrors"][0]["error"]


def test_a_spout_has_storms_fields(reader: TestClient) -> None:
    """Its verdicts are those of messages."""
    spout = got(reader, f"{SHOP}/component/orders")
    assert_has(spout, COMPONENT, "spoutSummary")
    assert_has(spout["spoutSummary"][0], STATS)
    assert_has(spout["outputStats"][0], "stream emitted transferred completeLatency acked failed")
    assert_has(spout["executorStats"][0], EXECUTOR, "completeLatency")


def test_metrics_lag_and_graph_have_storms_fields(reader: TestClient) -> None:
    """Tools that draw Storm's graph draw ours."""
    metrics = got(reader, f"{SHOP}/metrics")
    assert_has(metrics, "window window-hint spouts bolts")
    assert_has(metrics["spouts"][0], "id emitted transferred acked failed complete_ms_avg")
    assert_has(
        metrics["bolts"][0],
        "id emitted transferred acked failed process_ms_avg executed executed_ms_avg",
    )
    assert_has(metrics["bolts"][0]["acked"][0], "component_id stream_id value")
    lag = got(reader, f"{SHOP}/lag")["orders"]
    assert lag["spoutLagResult"]["orders"]["0"] == {
        "consumerCommittedOffset": 18_204,
        "logHeadOffset": 18_204 + 5210,
        "lag": 5210,
    }
    rows = got(reader, f"{SHOP}/visualization-init")["visualizationTable"][0][":row"]
    assert rows == [{":stream": "default", ":sani-stream": "sdefault", ":checked": True}]
    graph = got(reader, f"{SHOP}/visualization?window=600")
    assert graph["enrich"][":inputs"][0][":component"] == "parse"


def test_storms_orders_are_taken(client: TestClient, shop: FakeControl) -> None:
    """The answer is Storm's."""
    for order in ("deactivate", "activate", "kill/30"):
        response = client.post(f"{SHOP}/{order}")
        assert response.json() == {
            "topologyOperation": order,
            "topologyId": "shop-7f3a",
            "status": "success",
        }
    assert shop.orders == [("deactivate",), ("activate",), ("kill", 30.0)]


def test_a_rebalance_is_refused_with_a_way_on(reader: TestClient) -> None:
    """The text says what to do instead."""
    response = reader.post(f"{SHOP}/rebalance/30")
    assert response.status_code == 400
    assert "start it again on the same checkpoint" in response.json()["errorMessage"]


# --- ours ----------------------------------------------------------------------------------------


def test_messages_are_found_by_state_component_age_and_name(reader: TestClient) -> None:
    """The oldest come first."""
    everything = got(reader, f"{SHOP}/messages")
    ages = [one["age_secs"] for one in everything["messages"]]
    assert ages == sorted(ages, reverse=True)
    retry = got(reader, f"{SHOP}/messages?state=retry&component=enrich")
    assert {one["state"] for one in retry["messages"]} == {"retry"}
    old = got(reader, f"{SHOP}/messages?older_than_secs=300")
    assert 0 < old["total"] < everything["total"]
    assert min(one["age_secs"] for one in old["messages"]) > 300
    named = got(reader, f"{SHOP}/messages?name=18204")
    assert [one["id"] for one in named["messages"]] == ["m00000"]


def test_a_message_has_its_tree(reader: TestClient) -> None:
    """By its id or its name."""
    by_id = got(reader, f"{SHOP}/message?id=m00000")
    assert by_id["attempts"][0]["tree"]["nodes"][1]["frame"] == "shop/bolts.py:41 in execute"
    assert got(reader, f"{SHOP}/message?id=orders-0:18204")["id"] == "m00000"


def test_letters_are_replayed_and_discarded(client: TestClient, shop: FakeControl) -> None:
    """In bulk, or a single one with new values."""
    groups = got(client, f"{SHOP}/letters/groups")
    assert [one["count"] for one in groups] == [23, 7, 4]
    one = {"letters": ["enrich-key-001"], "values": {"order": "mended", "n": 1}}
    assert client.post(f"{SHOP}/letters/replay", json=one).json() == {"name": "replay-1"}
    client.post(f"{SHOP}/letters/replay", json={"group": "enrich-key"})
    (rest, _) = got(client, f"{SHOP}/replays")
    assert (rest["asked"], rest["acked"], list(rest["left"])) == (22, 21, ["enrich-key-005"])
    gone = client.post(f"{SHOP}/letters/discard", json={"group": "parse-json"})
    assert gone.json() == {"count": 7}
    bad: list[dict[str, Any]] = [{}, {"letters": ["a"], "group": "b"}, {"letters": []}]
    for body in bad:
        assert client.post(f"{SHOP}/letters/discard", json=body).status_code == 400
    assert len(shop.orders) == 3


def test_the_other_orders_reach_the_driver(client: TestClient, shop: FakeControl) -> None:
    """Each with its body."""
    bodies: dict[str, dict[str, Any]] = {
        "messages/retry": {"messages": ["m00000"]},
        "partitions/pause": {"spout": "orders", "partitions": ["orders-1"]},
        "partitions/resume": {"spout": "orders"},
        "follow": {"name": "sku-8812", "spout": "orders"},
        "unfollow": {"name": "sku-8812"},
        "level": {"component": "parse", "level": "DEBUG"},
    }
    for path, body in bodies.items():
        assert client.post(f"{SHOP}/{path}", json=body).status_code == 200
    assert [order[0] for order in shop.orders] == [
        "retry",
        "pause",
        "resume",
        "follow",
        "unfollow",
        "set_level",
    ]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        (f"{API}/topology/nobody", 404, "/api/v1/topology/summary"),
        (f"{SHOP}/component/nobody", 404, "no component 'nobody'"),
        (f"{SHOP}/message?id=nobody", 404, "Nothing is known"),
        (f"{SHOP}/letter?id=nobody", 404, "no letter"),
        (f"{SHOP}?window=soon", 400, "no length of time"),
        (f"{SHOP}/messages?limit=0", 422, "limit"),
        (f"{SHOP}/messages?state=lost", 422, "state"),
    ],
)
def test_a_bad_question_is_refused_in_words(
    reader: TestClient, path: str, status: int, words: str
) -> None:
    """In the shape of Storm's errors."""
    response = reader.get(path)
    assert response.status_code == status
    assert set(response.json()) == {"error", "errorMessage"}
    assert words in response.json()["errorMessage"]


def test_hostile_texts_come_back_as_they_are(reader: TestClient) -> None:
    """JSON carries any text; a reader that shows it has to make it safe."""
    hostile = FakeControl("hostile", hostile=True)
    for path in ("messages", "letters", "lines", "message?id=m00001"):
        got(reader, f"{API}/topology/hostile-7f3a/{path}")
    names = [
        one["name"] for one in got(reader, f"{API}/topology/hostile-7f3a/messages")["messages"]
    ]
    assert names == [one.name for one in hostile.messages().messages]


def test_json_has_no_numbers_that_are_none() -> None:
    """Many clients refuse NaN."""
    answer = Answer({"mean": float("nan"), "most": float("inf"), "half": "\ud800"})
    assert json.loads(bytes(answer.body)) == {"mean": None, "most": None, "half": "\ud800"}
    assert bytes(answer.body).isascii()


# --- health --------------------------------------------------------------------------------------


def test_the_page_is_alive_whatever_happens(client: TestClient, shop: FakeControl) -> None:
    """A driver's end is no reason to restart the page."""
    shop.gone = True
    assert got(client, "/livez") == {"status": "alive"}


def test_ready_while_polls_and_commits_move(reader: TestClient) -> None:
    """All topologies, or one."""
    assert got(reader, "/readyz")["status"] == "ready"
    assert set(got(reader, "/readyz?topology=shop-7f3a")["topologies"]) == {"shop-7f3a"}
    assert reader.get("/readyz?topology=nobody").status_code == 404


def test_not_ready_with_a_reason(registry: FakeRegistry, shop: FakeControl) -> None:
    """Spouts that rest, and a driver that is gone; one that has ended plays no part."""
    clock = ManualClock()
    client = TestClient(make_app(registry, clock=clock), base_url="http://localhost")
    assert client.get("/readyz").status_code == 200
    shop.deactivate()
    clock.advance(2)
    response = client.get("/readyz")
    assert response.status_code == 503
    assert "INACTIVE" in response.json()["topologies"]["shop-7f3a"]
    shop.gone = True
    clock.advance(2)
    assert "gone" in client.get("/readyz").json()["topologies"]["shop-7f3a"]
    del registry.controls["shop-7f3a"]
    clock.advance(2)
    assert client.get("/readyz").json()["topologies"] == {"hostile-7f3a": "ready"}


def test_the_limit_is_the_askers(reader: TestClient) -> None:
    """The rule is tested beside control/health.py."""
    assert reader.get("/readyz?most_secs=0.0000001").status_code == 503
    assert reader.get("/readyz?most_secs=0").status_code == 422


def test_prometheus_reads_all_topologies(registry: FakeRegistry, shop: FakeControl) -> None:
    """Each driver is asked once a second at most; one that is gone is down."""
    clock = ManualClock()
    client = TestClient(make_app(registry, clock=clock), base_url="http://localhost")
    for _ in range(10):
        response = client.get("/metrics")
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert 'sparkstorm_up{topology="shop"} 1' in response.text
    assert 'sparkstorm_up{topology="hostile"} 1' in response.text
    assert shop.asked["situation"] == 1
    shop.gone = True
    clock.advance(2)
    assert 'sparkstorm_up{topology="shop"} 0' in client.get("/metrics").text


def test_the_document_names_every_path(reader: TestClient) -> None:
    """Ours, Storm's and those of health; no page."""
    paths = reader.get("/openapi.json").json()["paths"]
    for path in ("/livez", "/readyz", "/api/v1/topology/summary"):
        assert path in paths
    assert "/api/v1/topology/{topology}/letters/replay" in paths
    assert not [path for path in paths if path.startswith("/topologies")]
