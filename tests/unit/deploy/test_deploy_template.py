"""What template.yaml declares is what the code expects."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from mango.aws.clients import AwsSettings
from mango.aws.table import declare
from mango.domain.errors import ANSWERS
from mango.handlers.settings import RoundSettings, StreamSettings
from mango.stream.opening import target_of
from mango_local.asl import load
from mango_local.deploy import project
from mango_local.deploy.plan import FUNCTIONS
from mango_local.deploy.targets import LAMBDA_PYTHON

Json = dict[str, Any]

PICTURED = ("RestApi", "Resource", "Method", "GatewayResponse")


def of_type(resources: Json, kind: str) -> dict[str, Json]:
    return {name: each["Properties"] for name, each in resources.items() if each["Type"] == kind}


def pictured(resources: Json) -> Json:
    """Everything that a deployment of the API is a picture of."""
    kinds = {f"AWS::ApiGateway::{kind}" for kind in PICTURED}
    return {name: each for name, each in resources.items() if each["Type"] in kinds}


def paths(resources: Json) -> dict[str, str]:
    """The path of each declared resource."""
    declared: dict[str, Json] = of_type(resources, "AWS::ApiGateway::Resource")

    def path(name: str) -> str:
        parent = declared[name]["ParentId"].get("Ref")
        return f"{path(parent) if parent else ''}/{declared[name]['PathPart']}"

    return {name: path(name) for name in declared}


def test_the_table_is_the_one_that_the_code_declares(resources: Json) -> None:
    table = resources["Table"]["Properties"]
    model = declare("t", AwsSettings())
    schema: Any = model._get_schema()
    assert sorted_names(table["AttributeDefinitions"]) == sorted(
        (each["AttributeName"], each["AttributeType"]) for each in schema["attribute_definitions"]
    )
    assert keys_of(table["KeySchema"]) == keys_of(schema["key_schema"])
    indexes = {each["IndexName"]: each for each in table["GlobalSecondaryIndexes"]}
    declared = {each["index_name"]: each for each in schema["global_secondary_indexes"]}
    assert indexes.keys() == declared.keys()
    for name, index in indexes.items():
        assert keys_of(index["KeySchema"]) == keys_of(declared[name]["key_schema"])
        assert index["Projection"] == declared[name]["projection"]
    assert table["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
    assert table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True


def sorted_names(definitions: list[Json]) -> list[tuple[str, str]]:
    return sorted((each["AttributeName"], each["AttributeType"]) for each in definitions)


def keys_of(schema: list[Json]) -> dict[str, str]:
    return {each["KeyType"]: each["AttributeName"] for each in schema}


def test_each_function_has_its_handler(resources: Json) -> None:
    functions = of_type(resources, "AWS::Serverless::Function")
    assert {name: each["Handler"] for name, each in functions.items()} == {
        each.name: each.handler for each in FUNCTIONS
    }


def test_the_runtime_is_what_packages_are_made_for(template: Json) -> None:
    assert template["Globals"]["Function"]["Runtime"] == f"python{LAMBDA_PYTHON}"


def test_the_variables_are_those_that_functions_read(template: Json) -> None:
    known = {str(field.alias) for field in (RoundSettings.model_fields | StreamSettings.model_fields).values()}
    given = set(template["Globals"]["Function"]["Environment"]["Variables"]) - {"LOG_LEVEL"}
    assert given <= known
    assert known - given <= {"AWS_ENDPOINT_URL", "MANGO_MODEL_SECRET_ARN", "MANGO_STREAM_SECONDS", "None"}


def test_only_the_round_knows_the_models_secret(resources: Json) -> None:
    holders = [name for name, each in resources.items() if "ModelSecretArn" in json.dumps(each)]
    assert sorted(holders) == ["RoundFunction", "RoundRole"]


def test_the_streams_routes_go_to_their_function(resources: Json) -> None:
    where = paths(resources)
    streaming = {}
    for each in of_type(resources, "AWS::ApiGateway::Method").values():
        if each["Integration"].get("ResponseTransferMode") == "STREAM":
            streaming[where[each["ResourceId"]["Ref"]]] = each
    assert sorted(streaming) == [
        "/v1/sessions/{session_id}/events/stream",
        "/v1/sessions/{session_id}/threads/{thread_id}/stream",
    ]
    for path, each in streaming.items():
        assert target_of(path.replace("{session_id}", "sesn_1").replace("{thread_id}", "sthr_1")) is not None
        assert each["HttpMethod"] == "GET"
        assert "response-streaming-invocations" in json.dumps(each["Integration"]["Uri"])
        assert each["Integration"]["TimeoutInMillis"] == 900_000


def test_every_path_leads_somewhere(resources: Json) -> None:
    """Each declared path has a method, and each without a variable child has a greedy one."""
    where = paths(resources)
    methods = [each["ResourceId"] for each in of_type(resources, "AWS::ApiGateway::Method").values()]
    assert {each.get("Ref") for each in methods} >= set(where)
    for name, path in where.items():
        children = {each.rpartition("/")[2] for each in where.values() if each.rpartition("/")[0] == path}
        leaf = path.endswith(("{proxy+}", "/stream"))
        assert leaf or any(child.startswith("{") for child in children), name


def test_the_deployment_shows_the_api_as_it_is(resources: Json) -> None:
    shown = pictured(resources)
    digest = hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()[:10]
    (deployment,) = [name for name, each in resources.items() if each["Type"] == "AWS::ApiGateway::Deployment"]
    assert deployment == f"ApiDeployment{digest}", "the API changed: give its deployment this name in template.yaml"
    waits = set(resources[deployment]["DependsOn"])
    assert waits == {name for name, each in shown.items() if each["Type"].endswith(("Method", "GatewayResponse"))}


def test_the_gateways_own_answers_have_our_envelope(resources: Json) -> None:
    types = {each.type for each in ANSWERS.values()} | {"rate_limit_error", "timeout_error"}
    answers = of_type(resources, "AWS::ApiGateway::GatewayResponse")
    seen = {}
    for each in answers.values():
        text = each["ResponseTemplates"]["application/json"]
        body = json.loads(text.replace("$context.error.messageString", '"why"'))
        assert body["type"] == "error"
        assert body["error"].keys() == {"type", "message"}
        assert body["error"]["type"] in types
        assert body["request_id"] == "$context.requestId"
        seen[each["ResponseType"]] = body["error"]
    assert seen.keys() >= {
        "DEFAULT_4XX",
        "DEFAULT_5XX",
        "REQUEST_TOO_LARGE",
        "UNAUTHORIZED",
        "ACCESS_DENIED",
        "THROTTLED",
    }
    assert "/v1/files/uploads" in seen["REQUEST_TOO_LARGE"]["message"]


def test_binary_types_are_named_one_by_one(resources: Json) -> None:
    kinds = resources["Api"]["Properties"]["BinaryMediaTypes"]
    assert not [kind for kind in kinds if "*" in kind]
    assert {"multipart/form-data", "application/octet-stream"} <= set(kinds)
    assert "application/json" not in kinds


def test_the_state_machine_names_functions_of_the_template(resources: Json) -> None:
    machine = resources["TurnMachine"]["Properties"]
    text = project.machine().read_text("utf-8")
    substitutions = machine["DefinitionSubstitutions"]
    assert {f"${{{name}}}" for name in substitutions} == {
        state["Resource"] for state in json.loads(text)["States"].values() if state["Type"] == "Task"
    }
    assert machine["Type"] == "STANDARD"
    assert machine["Logging"]["IncludeExecutionData"] is False
    load(project.machine())


@pytest.mark.parametrize("name", ["Table", "Bucket", "Key"])
def test_what_holds_data_outlives_the_stack(resources: Json, name: str) -> None:
    assert resources[name]["DeletionPolicy"] == "RetainExceptOnCreate"
    assert resources[name]["UpdateReplacePolicy"] == "Retain"


def test_nobody_reaches_the_bucket_without_tls_or_as_the_public(resources: Json) -> None:
    bucket = resources["Bucket"]["Properties"]
    assert all(bucket["PublicAccessBlockConfiguration"].values())
    assert bucket["LifecycleConfiguration"]["Rules"][0]["AbortIncompleteMultipartUpload"]
    for policy in ("BucketPolicy", "QueuePolicy"):
        (statement,) = resources[policy]["Properties"]["PolicyDocument"]["Statement"]
        assert statement["Effect"] == "Deny"
        assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_each_function_writes_to_a_log_that_ends(resources: Json) -> None:
    for name, each in of_type(resources, "AWS::Serverless::Function").items():
        group = each["LoggingConfig"]["LogGroup"]["Ref"]
        assert group == f"{name.removesuffix('Function')}Logs"
        assert resources[group]["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"}


def test_the_translation_keeps_no_trace_of_sam(translated: Json) -> None:
    kinds = {each["Type"] for each in translated["Resources"].values()}
    assert not [kind for kind in kinds if kind.startswith("AWS::Serverless::")]
    assert "AWS::IAM::Role" in kinds
    roles = {name for name, each in translated["Resources"].items() if each["Type"] == "AWS::IAM::Role"}
    assert roles == {"ApiRole", "RoundRole", "TroubleRole", "SweepRole", "StreamRole", "TurnRole"}


def test_on_an_emulator_functions_start_themselves(translated: Json) -> None:
    functions = [each for each in translated["Resources"].values() if each["Type"] == "AWS::Lambda::Function"]
    assert len(functions) == len(FUNCTIONS)
    for each in functions:
        assert each["Properties"]["Runtime"] == "provided.al2023"
        assert each["Properties"]["Environment"]["Variables"]["EXTRA"] == "1"
        assert each["Properties"]["Code"] == {"S3Bucket": "packages", "S3Key": each["Properties"]["Code"]["S3Key"]}
