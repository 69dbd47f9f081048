"""Each role may do what its function's adapters do, and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mango_local.deploy import project

Json = dict[str, Any]

ROWS = ("dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem")
ACTIONS: dict[str, tuple[str, ...]] = {
    "put_item": ROWS[:1],
    "update_item": ROWS[1:2],
    "delete_item": ROWS[2:],
    "transact_write_items": (*ROWS, "dynamodb:ConditionCheckItem"),
    "get_item": ("dynamodb:GetItem",),
    "batch_get_item": ("dynamodb:BatchGetItem",),
    "query": ("dynamodb:Query",),
    "put_object": ("s3:PutObject",),
    "create_multipart_upload": ("s3:PutObject",),
    "upload_part": ("s3:PutObject",),
    "complete_multipart_upload": ("s3:PutObject",),
    "put_object_tagging": ("s3:PutObjectTagging",),
    "abort_multipart_upload": ("s3:AbortMultipartUpload",),
    "list_multipart_uploads": ("s3:ListBucketMultipartUploads",),
    "generate_presigned_url": ("s3:PutObject", "s3:GetObject"),  # whoever holds the address does it in the role's name
    "head_object": ("s3:GetObject", "s3:ListBucket"),
    "get_object": ("s3:GetObject", "s3:ListBucket"),  # with the latter a missing object is missing, not forbidden
    "delete_object": ("s3:DeleteObject",),
    "create_bucket": (),  # where no template makes it; not by functions
    "head_bucket": (),
    "send_message": ("sqs:SendMessage",),
    "delete_queue": ("sqs:DeleteQueue",),
    "create_queue": ("sqs:CreateQueue",),
    "get_queue_url": ("sqs:GetQueueUrl",),
    "start_execution": ("states:StartExecution",),
    "get_secret_value": ("secretsmanager:GetSecretValue",),
}
"""What a call of the adapters needs. A call that is not here has not been thought about."""

ALL_ROWS = ("put_item", "update_item", "delete_item", "transact_write_items", "get_item", "batch_get_item", "query")
RINGS = ("send_message", "create_queue", "get_queue_url")
CALLS: dict[str, tuple[str, ...]] = {
    "ApiRole": (
        *ALL_ROWS, *RINGS, "delete_queue", "start_execution", "put_object", "create_multipart_upload", "upload_part",
        "complete_multipart_upload", "put_object_tagging", "abort_multipart_upload", "get_object", "delete_object",
        "list_multipart_uploads", "generate_presigned_url", "head_object",
    ),
    "RoundRole": (*ALL_ROWS, *RINGS, "start_execution", "put_object", "get_object", "get_secret_value"),
    "TroubleRole": (*ALL_ROWS, "put_object", "get_object"),
    "SweepRole": (*ALL_ROWS, *RINGS, "start_execution", "put_object", "get_object", "delete_object"),
    "StreamRole": ("get_item", "batch_get_item", "query", "get_object"),
}  # fmt: skip
"""What each function does, by its adapters."""

AROUND = {
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "xray:PutTraceSegments",
    "xray:PutTelemetryRecords",
    "kms:Decrypt",  # contents of the bucket are encrypted
    "kms:GenerateDataKey",
    "bedrock:InvokeModelWithResponseStream",  # by the anthropic library
}
"""What no adapter of ours calls, but the platform or a library does."""
NAMELESS = {
    "xray:PutTraceSegments",
    "xray:PutTelemetryRecords",
    "xray:GetSamplingRules",
    "xray:GetSamplingTargets",
    "logs:CreateLogDelivery",
    "logs:GetLogDelivery",
    "logs:UpdateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:DescribeResourcePolicies",
    "logs:DescribeLogGroups",
}
"""Actions for which AWS takes no resource but `*`."""


def statements(role: Json) -> Iterator[Json]:
    for policy in role["Properties"]["Policies"]:
        for each in policy["PolicyDocument"]["Statement"]:
            yield each["Fn::If"][1] if "Fn::If" in each else each


def actions(statement: Json) -> list[str]:
    given = statement["Action"]
    return [given] if isinstance(given, str) else given


def calls_in(path: Path) -> Iterator[str]:
    """Methods called on a client, in one adapter."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr == "_client":
            yield node.attr


def test_every_call_of_the_adapters_is_known() -> None:
    found = {call for path in (project.sources() / "mango/aws").glob("*.py") for call in calls_in(path)}
    assert found <= ACTIONS.keys(), "say which actions these need, and who may: ACTIONS, CALLS and template.yaml"
    assert ACTIONS.keys() <= found, "nobody calls these any more"


@pytest.mark.parametrize("role", sorted(CALLS))
def test_a_role_allows_what_its_function_does_and_no_more(resources: Json, role: str) -> None:
    granted = {action for each in statements(resources[role]) for action in actions(each)} - AROUND
    assert granted == {action for call in CALLS[role] for action in ACTIONS[call]}


@pytest.mark.parametrize("role", [*sorted(CALLS), "TurnRole"])
def test_no_wildcard_where_aws_takes_names(resources: Json, role: str) -> None:
    for each in statements(resources[role]):
        assert each["Effect"] == "Allow"
        assert not [action for action in actions(each) if "*" in action]
        if each["Resource"] == "*":
            assert set(actions(each)) <= NAMELESS


def test_each_function_has_a_role_of_its_own(resources: Json) -> None:
    functions = {name: each for name, each in resources.items() if each["Type"] == "AWS::Serverless::Function"}
    roles = {name: each["Properties"]["Role"]["Fn::GetAtt"][0] for name, each in functions.items()}
    assert roles == {name: f"{name.removesuffix('Function')}Role" for name in functions}
    assert "Policies" not in {key for each in functions.values() for key in each["Properties"]}


def test_the_machine_may_call_its_two_functions(resources: Json) -> None:
    invokes = [each for each in statements(resources["TurnRole"]) if actions(each) == ["lambda:InvokeFunction"]]
    (statement,) = invokes
    assert [each["Fn::GetAtt"][0] for each in statement["Resource"]] == ["RoundFunction", "TroubleFunction"]
