"""Declares the table, and creates it where no template does (embedded and emulated profiles, tests)."""

from __future__ import annotations

from pynamodb.attributes import TTLAttribute, UnicodeAttribute
from pynamodb.constants import PAY_PER_REQUEST_BILLING_MODE
from pynamodb.exceptions import TableError
from pynamodb.indexes import GlobalSecondaryIndex, KeysOnlyProjection
from pynamodb.models import Model

from mango.aws.clients import AwsSettings


class ByList(GlobalSecondaryIndex["Record"]):  # type: ignore[no-untyped-call] # their own omission
    """Resources of one kind in one workspace, by time of creation."""

    class Meta:
        index_name = "by_list"
        projection = KeysOnlyProjection()

    list_of = UnicodeAttribute(hash_key=True)
    listed_at = UnicodeAttribute(range_key=True)


class Due(GlobalSecondaryIndex["Record"]):  # type: ignore[no-untyped-call] # their own omission
    """Whatever owes something to the future, by the time it does."""

    class Meta:
        index_name = "due"
        projection = KeysOnlyProjection()

    due_shard = UnicodeAttribute(hash_key=True)
    due = UnicodeAttribute(range_key=True)


class Record(Model):
    """The part of every item that the table itself knows: keys, index attributes, time to live."""

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    ttl = TTLAttribute(null=True)
    by_list = ByList()
    due_index = Due()


def declare(table: str, settings: AwsSettings) -> type[Record]:
    """The model of a table with this name, at this endpoint."""

    class Declared(Record):
        class Meta:
            table_name = table
            region = settings.region
            host = settings.endpoint_url
            billing_mode = PAY_PER_REQUEST_BILLING_MODE
            aws_access_key_id = settings.access_key_id
            aws_secret_access_key = settings.secret_access_key
            connect_timeout_seconds = settings.connect_seconds
            read_timeout_seconds = settings.read_seconds

    return Declared


def create_table(table: str, settings: AwsSettings) -> None:
    """Creates the table if it is missing, and waits until it can be used."""
    model = declare(table, settings)
    try:
        _create(model)
    except TableError as error:
        if error.cause_response_code != "ResourceInUseException":
            raise
        # Somebody else creates it at this moment.
        _create(model)


def _create(model: type[Record]) -> None:
    # Switching on a time to live that is on is an error. Expiry is compared in code; this only cleans up.
    model.create_table(wait=True, ignore_update_ttl_errors=True)
