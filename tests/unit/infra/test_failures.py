from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised


def test_queues_are_encrypted_and_refuse_requests_without_tls(plain: Synthesised, full: Synthesised) -> None:
    """Under SQS's own key, or under the stack's."""
    for stack in (plain, full):
        queues, policies = stack.of_type("SQS::Queue"), stack.of_type("SQS::QueuePolicy")
        assert all("KmsMasterKeyId" in queue or queue["SqsManagedSseEnabled"] for queue in queues.values())
        refusing = [
            queue["Ref"]
            for policy in policies.values()
            for statement in policy["PolicyDocument"]["Statement"]
            for queue in policy["Queues"]
            if statement["Effect"] == "Deny" and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        ]
        assert sorted(refusing) == sorted(queues)
