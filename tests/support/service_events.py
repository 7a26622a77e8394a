"""Events as AWS's services send them to a function, in the forms of their documentation.

`test_trigger` holds them against the models of Powertools, where it has one.
"""

from __future__ import annotations

import json
from typing import Any

_S3: dict[str, Any] = {
    "eventVersion": "2.1",
    "eventSource": "aws:s3",
    "awsRegion": "us-east-2",
    "eventTime": "2026-11-20T19:37:27.192Z",
    "eventName": "ObjectCreated:Put",
    "userIdentity": {"principalId": "AWS:AIDAINPONIXQXHT3IKHL2"},
    "requestParameters": {"sourceIPAddress": "203.0.113.5"},
    "responseElements": {"x-amz-request-id": "D82B88E5F771F645", "x-amz-id-2": "vlR7PnpV2Ce81l0PRw6jlUpck7Jo5ZsQ="},
    "s3": {
        "s3SchemaVersion": "1.0",
        "configurationId": "landing",
        "bucket": {
            "name": "landing",
            "ownerIdentity": {"principalId": "A3I5XTEXAMAI3E"},
            "arn": "arn:aws:s3:::landing",
        },
        "object": {"key": "day/a.csv", "size": 13, "eTag": "b21b84d653bb07b0", "sequencer": "0C0F6F405D6ED209E1"},
    },
}


def s3() -> dict[str, Any]:
    """See https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html."""
    return {"Records": [_S3]}


def s3_test() -> dict[str, Any]:
    """See https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html."""
    return {
        "Service": "Amazon S3",
        "Event": "s3:TestEvent",
        "Time": "2026-11-20T15:45:33.000Z",
        "Bucket": "landing",
        "RequestId": "5582815E1AEA5ADF",
        "HostId": "8cLeGAmw098X5cv4Zkwcmo8vvZa3eH3eKxsPzbB9wrR+YstdA6Knx4Ip8EXAMPLE",
    }


def sns(text: str) -> dict[str, Any]:
    """See https://docs.aws.amazon.com/lambda/latest/dg/with-sns.html."""
    topic = "arn:aws:sns:us-east-2:123456789012:landing"
    message = {
        "SignatureVersion": "1",
        "Timestamp": "2026-11-20T12:45:07.000Z",
        "Signature": "tcc6faL2yUC6dgZdmrwh1Y4cGa/ebXEkAi6RibDsvpi+tE/1+82j",
        "SigningCertUrl": "https://sns.us-east-2.amazonaws.com/SimpleNotificationService.pem",
        "MessageId": "95df01b4-ee98-5cb9-9903-4c221d41eb5e",
        "Message": text,
        "MessageAttributes": {"Test": {"Type": "String", "Value": "TestString"}},
        "Type": "Notification",
        "UnsubscribeUrl": "https://sns.us-east-2.amazonaws.com/?Action=Unsubscribe",
        "TopicArn": topic,
        "Subject": "Amazon S3 Notification",
    }
    record = {
        "EventVersion": "1.0",
        "EventSubscriptionArn": f"{topic}:21be56ed-a058-49f5-8c98-aedd2564c486",
        "EventSource": "aws:sns",
        "Sns": message,
    }
    return {"Records": [record]}


def notification(text: str) -> str:
    """Return the body of an SNS message in a queue: https://docs.aws.amazon.com/sns/latest/dg/sns-sqs-as-subscriber.html."""
    return json.dumps(
        {
            "Type": "Notification",
            "MessageId": "63a3f6b6-d533-4a47-aef9-fcf5cf758c76",
            "TopicArn": "arn:aws:sns:us-east-2:123456789012:landing",
            "Subject": "Amazon S3 Notification",
            "Message": text,
            "Timestamp": "2026-11-20T05:12:16.901Z",
            "SignatureVersion": "1",
            "Signature": "EXAMPLEnTrFPa37tnVO0FF9Iau3MGzjlJLRfySEoWz4uZHSj6ycK4ph",
            "SigningCertURL": "https://sns.us-east-2.amazonaws.com/SimpleNotificationService.pem",
            "UnsubscribeURL": "https://sns.us-east-2.amazonaws.com/?Action=Unsubscribe",
        }
    )


def sqs(*bodies: str) -> dict[str, Any]:
    """See https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html."""
    return {
        "Records": [
            {
                "messageId": f"059f36b4-87a3-44ab-83d2-66197583{number:04}",
                "receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
                "body": body,
                "attributes": {
                    "ApproximateReceiveCount": "1",
                    "SentTimestamp": "1763638649183",
                    "SenderId": "AIDAIENQZJOLO23YVJ4VO",
                    "ApproximateFirstReceiveTimestamp": "1763638649185",
                },
                "messageAttributes": {},
                "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:us-east-2:123456789012:jobs",
                "awsRegion": "us-east-2",
            }
            for number, body in enumerate(bodies)
        ]
    }


def dynamodb(*numbers: int) -> dict[str, Any]:
    """See https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html."""
    return {
        "Records": [
            {
                "eventID": f"c4ca4238a0b923820dcc509a6f75849{number}",
                "eventVersion": "1.1",
                "dynamodb": {
                    "ApproximateCreationDateTime": 1763638649.0,
                    "Keys": {"Id": {"N": "101"}},
                    "NewImage": {"Message": {"S": "New item!"}, "Id": {"N": "101"}},
                    "StreamViewType": "NEW_AND_OLD_IMAGES",
                    "SequenceNumber": f"11{number}",
                    "SizeBytes": 26,
                },
                "awsRegion": "us-east-2",
                "eventName": "INSERT",
                "eventSourceARN": "arn:aws:dynamodb:us-east-2:123456789012:table/t/stream/2026-05-11T21:21:33.291",
                "eventSource": "aws:dynamodb",
            }
            for number in numbers
        ]
    }


def kinesis() -> dict[str, Any]:
    """See https://docs.aws.amazon.com/lambda/latest/dg/with-kinesis.html."""
    number = "49590338271490256608559692538361571095921575989136588898"
    record = {
        "kinesis": {
            "kinesisSchemaVersion": "1.0",
            "partitionKey": "1",
            "sequenceNumber": number,
            "data": "SGVsbG8sIHRoaXMgaXMgYSB0ZXN0Lg==",
            "approximateArrivalTimestamp": 1763638650.987,
        },
        "eventSource": "aws:kinesis",
        "eventVersion": "1.0",
        "eventID": f"shardId-000000000006:{number}",
        "eventName": "aws:kinesis:record",
        "invokeIdentityArn": "arn:aws:iam::123456789012:role/lambda-role",
        "awsRegion": "us-east-2",
        "eventSourceARN": "arn:aws:kinesis:us-east-2:123456789012:stream/lambda-stream",
    }
    return {"Records": [record]}


def _kafka(**offsets: list[int]) -> dict[str, Any]:
    return {
        "bootstrapServers": "b-2.demo.kafka.us-east-1.amazonaws.com:9092,b-1.demo.kafka.us-east-1.amazonaws.com:9092",
        "records": {
            f"mytopic-{name[1:]}": [
                {
                    "topic": "mytopic",
                    "partition": int(name[1:]),
                    "offset": offset,
                    "timestamp": 1763638650987,
                    "timestampType": "CREATE_TIME",
                    "key": "abcDEFghiJKLmnoPQRstuVWXyz1234==",
                    "value": "SGVsbG8sIHRoaXMgaXMgYSB0ZXN0Lg==",
                    "headers": [{"headerKey": [104, 101, 97, 100, 101, 114, 86, 97, 108, 117, 101]}],
                }
                for offset in batch
            ]
            for name, batch in offsets.items()
        },
    }


def msk(**offsets: list[int]) -> dict[str, Any]:
    """See https://docs.aws.amazon.com/lambda/latest/dg/with-msk.html. `offsets`: by partition, `p0=[15, 16]`."""
    arn = "arn:aws:kafka:us-east-1:123456789012:cluster/vpc-2priv-2pub/751d2973-a626-431c-9d4e-d7975eb44dd7-2"
    return {"eventSource": "aws:kafka", "eventSourceArn": arn, **_kafka(**offsets)}


def kafka(**offsets: list[int]) -> dict[str, Any]:
    """See https://docs.aws.amazon.com/lambda/latest/dg/with-kafka.html. `offsets`: as of `msk`."""
    return {"eventSource": "SelfManagedKafka", **_kafka(**offsets)}


def mq() -> dict[str, Any]:
    """See https://docs.aws.amazon.com/lambda/latest/dg/with-mq.html."""
    arn = "arn:aws:mq:us-east-2:111122223333:broker:test:b-9bcfa592-423a-4942-879d-eb284b418fc8"
    message = {"messageID": "ID:b-9bcfa592-1.mq.us-east-2.amazonaws.com:1:1:1", "data": "QUJDOkFBQUE="}
    return {"eventSource": "aws:mq", "eventSourceArn": arn, "messages": [message]}


def function_url() -> dict[str, Any]:
    """See https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html."""
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": "/",
        "rawQueryString": "",
        "headers": {"content-type": "application/json"},
        "requestContext": {
            "accountId": "anonymous",
            "apiId": "<url-id>",
            "domainName": "<url-id>.lambda-url.us-west-2.on.aws",
            "domainPrefix": "<url-id>",
            "http": {
                "method": "POST",
                "path": "/",
                "protocol": "HTTP/1.1",
                "sourceIp": "203.0.113.5",
                "userAgent": "agent",
            },
            "requestId": "id",
            "routeKey": "$default",
            "stage": "$default",
            "time": "20/Nov/2026:19:03:58 +0000",
            "timeEpoch": 1763638638390,
        },
        "body": '{"entryPoint": "s3://scripts/job.py", "clientToken": "t"}',
        "isBase64Encoded": False,
    }


def load_balancer() -> dict[str, Any]:
    """See https://docs.aws.amazon.com/lambda/latest/dg/services-alb.html."""
    group = "arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/lambda-279XGJDqGZ5rsrHC2Fjr/49e9d65c45c6"
    return {
        "requestContext": {"elb": {"targetGroupArn": group}},
        "httpMethod": "GET",
        "path": "/lambda",
        "queryStringParameters": {},
        "headers": {"host": "lambda-alb-123578498.us-east-2.elb.amazonaws.com"},
        "body": "",
        "isBase64Encoded": False,
    }


def task(state: object) -> dict[str, Any]:
    """See https://docs.aws.amazon.com/step-functions/latest/dg/connect-to-resource.html, *Wait for a callback*."""
    return {"input": state, "token": "AQCEAAAAKgAAAAMAAAAAAAAAAe"}


def scheduler() -> dict[str, Any]:
    """Return the event of EventBridge Scheduler for a schedule without an input of its own."""
    return {
        "version": "0",
        "id": "d167b752-343a-4b28-afd6-d4de056319e8",
        "detail-type": "Scheduled Event",
        "source": "aws.scheduler",
        "account": "123456789012",
        "time": "2026-11-20T16:03:00Z",
        "region": "us-east-1",
        "resources": ["arn:aws:scheduler:us-east-1:123456789012:schedule/default/nightly"],
        "detail": "{}",
    }
