"""The stack in an account, by default one on this machine, by the CDK's command line: bootstrap, deploy, destroy."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from scripts.account.client import client_of
from scripts.account.server import ACCOUNT
from scripts.provision.place import ROOT
from soal.console.problem import Failure
from soal.local.names import REGION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from scripts.provision.account import Programs

STACK: Final = "Soal"
_DEPLOYER: Final = "deployer"
_TIMEOUT_S: Final = 1800
"""An image that the CDK builds and pushes takes many minutes."""
_TAIL_LINES: Final = 30


@dataclass(frozen=True, slots=True)
class Deployment:
    """The CDK's command line in an account. `variables`: the environment of a client; `folder`: for its files."""

    programs: Programs
    variables: Mapping[str, str]
    folder: Path
    stack: str = STACK
    account: str = ACCOUNT
    region: str = REGION

    def bootstrap(self) -> float:
        """Make what the CDK needs in an account, as one does once; return the seconds."""
        return self._run("bootstrap", f"aws://{self.account}/{self.region}")

    def deploy(self, context: Mapping[str, str]) -> float:
        """Deploy the stack with these context keys; return the seconds."""
        given = [word for pair in context.items() for word in ("-c", "=".join(pair))]
        return self._run("deploy", self.stack, *given, "--require-approval", "never", "--ci")

    def destroy(self, context: Mapping[str, str]) -> float:
        """Remove the stack; return the seconds."""
        given = [word for pair in context.items() for word in ("-c", "=".join(pair))]
        return self._run("destroy", self.stack, *given, "--force", "--ci")

    def _run(self, *words: str) -> float:
        begun = time.monotonic()
        path = f"{self.programs.path}:{self.variables['PATH']}"
        own = {"PATH": path, "CDK_HOME": str(self.folder / "cdk"), "CDK_DISABLE_CLI_TELEMETRY": "1"}
        where = {"CDK_DEFAULT_ACCOUNT": self.account, "CDK_DEFAULT_REGION": self.region}
        output = ("--output", str(self.folder / "cdk.out"))
        try:
            done = subprocess.run(
                [*self.programs.cdk, *words, *output, "--no-notices", "--no-version-reporting"],
                cwd=ROOT,
                env={**self.variables, **where, **own},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise _failed(words[0], f"not done after {_TIMEOUT_S} s", str(error.stdout or "")) from error
        if done.returncode != 0:
            raise _failed(words[0], f"exit {done.returncode}", done.stdout)
        return time.monotonic() - begun


def deployer_of(aws: Mapping[str, str]) -> dict[str, str]:
    """Make a user of the account who may only assume the roles of the CDK's bootstrap; return the variables of his
    clients. `aws` are those of the administrator.
    """
    iam = client_of(aws, "iam")
    iam.create_user(UserName=_DEPLOYER)
    allowed = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": f"arn:aws:iam::{ACCOUNT}:role/cdk-*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    iam.put_user_policy(UserName=_DEPLOYER, PolicyName="assume", PolicyDocument=document)
    key = iam.create_access_key(UserName=_DEPLOYER)["AccessKey"]
    own = {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
    return {**aws, **own}


def outputs(client: Any, stack: str = STACK) -> dict[str, str]:  # noqa: ANN401 - a boto3 client
    """Return the outputs of the deployed stack, as CloudFormation describes them."""
    (found,) = client.describe_stacks(StackName=stack)["Stacks"]
    return {one["OutputKey"]: one["OutputValue"] for one in found["Outputs"]}


def _failed(word: str, how: str, said: str) -> Failure:
    tail = "\n".join(f"  | {line}" for line in said.splitlines()[-_TAIL_LINES:])
    return Failure(f"cdk {word}: {how}\n{tail}", todo="see above")
