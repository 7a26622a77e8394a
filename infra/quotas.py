"""Check the stack's policies against IAM's quotas; otherwise a deployment would fail while it creates the policies.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from infra.contradictions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from infra.config import Config

_ATTACHED_MAX: Final = 10
_CHARACTERS_MAX: Final = {"AWS::IAM::ManagedPolicy": 6144, "AWS::IAM::Policy": 10240, "AWS::EC2::VPCEndpoint": 20480}
_REFERENCE: Final = "x" * 64
"""A stand-in with the longest name that CloudFormation makes for a function, a role or a bucket."""
_LENGTHS: Final = {"AWS::Partition": 10, "AWS::Region": 14, "AWS::AccountId": 12}
_ARN: Final = "x" * 140
_NAMED: Final = ("data", "read_only_data", "glue_databases", "secrets")


def beyond_quotas(template: Mapping[str, Any], config: Config) -> Iterator[ConfigError]:
    """Yield an error for a role with more managed policies than IAM allows, and for a policy that is too long."""
    resources = template["Resources"]
    for name, role in resources.items():
        if role["Type"] == "AWS::IAM::Role":
            managed = [entry for entry in resources.values() if _is_of(entry, name)]
            if len(managed) > _ATTACHED_MAX:
                yield _too_many(config, name, _ATTACHED_MAX / len(managed), f"{len(managed)} managed policies")
    for name, resource in resources.items():
        length_max = _CHARACTERS_MAX.get(resource["Type"])
        size = 0 if length_max is None else _characters(resource["Properties"].get("PolicyDocument"))
        if length_max is not None and size > length_max:
            yield _too_many(config, name, length_max / size, f"a policy of about {size} characters, of {length_max}")


def _too_many(config: Config, name: str, share: float, excess: str) -> ConfigError:
    key = max(_NAMED, key=lambda key: len(getattr(config, key)))
    count = len(getattr(config, key))
    return ConfigError(
        key,
        f"{count} of them",
        f"they make {excess} for {name}, more than IAM takes; about {int(count * share)} fit. Name whole buckets, or"
        " prefixes that several have in common, or make a second stack",
    )


def _is_of(resource: Mapping[str, Any], role: str) -> bool:
    return resource["Type"] == "AWS::IAM::ManagedPolicy" and {"Ref": role} in resource["Properties"].get("Roles", ())


def _characters(document: object) -> int:
    """Return the length that IAM counts, without blanks, with each reference at its greatest length."""
    return len(re.sub(r"\s", "", json.dumps(_resolved(document), separators=(",", ":"))))


def _resolved(value: object) -> object:
    match value:
        case {"Ref": name}:
            return _REFERENCE[: _LENGTHS.get(str(name), len(_REFERENCE))]
        case {"Fn::GetAtt": _}:
            return _ARN
        case {"Fn::Join": [str(between), list(parts)]}:
            return between.join(str(_resolved(part)) for part in parts)
        case dict():
            return {key: _resolved(member) for key, member in value.items()}
        case list():
            return [_resolved(entry) for entry in value]
    return value
