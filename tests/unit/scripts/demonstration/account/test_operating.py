"""The account's demonstration hears an alarm when it rings, and not when it ends."""

from __future__ import annotations

import json
from unittest.mock import MagicMock

from scripts.demonstration.account import operating


def message(name: str, state: str) -> dict[str, str]:
    said = json.dumps({"AlarmName": name, "NewStateValue": state})
    return {"Body": json.dumps({"Message": said}), "ReceiptHandle": name}


def test_an_alarm_is_heard_when_it_rings_not_when_it_ends() -> None:
    """Each message is taken out of the queue, so that the next look finds the others."""
    sqs = MagicMock()
    sqs.receive_message.return_value = {"Messages": [message("rings", "ALARM"), message("ends", "OK")]}

    assert operating._heard(sqs, "q", {"before"}) == {"before", "rings"}
    assert [call.kwargs["ReceiptHandle"] for call in sqs.delete_message.call_args_list] == ["rings", "ends"]
