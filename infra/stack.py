"""The stack, which combines one construct per concern."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Annotations, Aws, CfnOutput, Stack, Tags

from infra import catalog, secrets
from infra.alarm_rules import deployment_rule, execution_rules, job_rules, queue_rules, redrive_rules, sweeper_rules
from infra.alarms import Alarms
from infra.checkpoints import CheckpointBucket
from infra.contradictions import unknown_predecessors
from infra.dashboard import dashboard
from infra.deployment import GradualDeployment
from infra.encryption import key_statements, own_key
from infra.environment import Resources, job_environment, sweeper_environment
from infra.failures import FailureQueue, UndeliveredQueue, job_queue_name, queue_arn
from infra.function import JobFunction
from infra.image import Image
from infra.lake import Lake
from infra.locks import LockTable
from infra.network import Network
from infra.redrive import Redrive
from infra.schedules import Schedules
from infra.scripts_bucket import Scripts
from infra.sweeper import Sweeper
from infra.triggers import Triggers
from infra.workflow import Workflow

if TYPE_CHECKING:
    from constructs import Construct

    from infra.config import Config


class SoalStack(Stack):
    """Function, buckets, sweeper, alarms and dashboard, all according to `config`."""

    def __init__(self, scope: Construct, config: Config) -> None:
        super().__init__(scope, config.stack_name, description="SoAL: Spark on AWS Lambda, without lost writes")
        for tag, value in config.tags.items():
            Tags.of(self).add(tag, value)
        key = own_key(self) if config.kms else None
        checkpoints = CheckpointBucket(self, "Checkpoints", days=config.checkpoint_days, key=key)
        scripts = Scripts(self, "Scripts", existing=config.scripts, key=key)
        lake = Lake(self, "Lake", config=config, key=key)
        jobs_name = job_queue_name(config.stack_name)
        jobs_arn = queue_arn(jobs_name) if config.queue else None
        failed = FailureQueue(self, "Failures", jobs_arn=jobs_arn, key=key)
        failures = failed.queue
        undelivered = UndeliveredQueue(self, "Undelivered", key=key).queue
        image = Image(self, config)
        locks = LockTable(self, "Locks") if config.coordination == "dynamodb" else None
        network = Network(
            self,
            "Network",
            config=config,
            locks=None if locks is None else locks.table,
            buckets=[checkpoints.bucket.bucket_arn, *scripts.bucket_arns, *lake.bucket_arns],
        )
        locks_uri = "" if locks is None else locks.uri
        resources = Resources(Aws.STACK_NAME, checkpoints.bucket.bucket_name, scripts.uri, locks_uri)
        job = JobFunction(
            self,
            "Runtime",
            config=config,
            image=image,
            network=network,
            statements=[
                *checkpoints.job_statements(),
                *scripts.job_statements(),
                *lake.job_statements(),
                *catalog.job_statements(config),
                *secrets.job_statements(config),
                *(() if locks is None else locks.job_statements()),
                *key_statements(key, "s3", "sqs", "lambda"),
            ],
            environment=job_environment(config, resources),
            failures=failed.for_functions,
            key=key,
        )
        sweeper = Sweeper(
            self,
            "Sweeper",
            config=config,
            image=image,
            network=network,
            statements=[
                *checkpoints.sweeper_statements(),
                *lake.sweeper_statements(),
                *catalog.sweeper_statements(config),
                *secrets.sweeper_statements(config),
                *key_statements(key, "s3", "lambda"),
            ],
            environment=sweeper_environment(config, resources),
            undelivered=undelivered,
            key=key,
        )
        redrive = (
            Redrive(
                self,
                "Redrive",
                config=config,
                image=image,
                alias=job.alias,
                failures=failures,
                jobs_arn=jobs_arn,
                key_statements=key_statements(key, "sqs", "lambda"),
                resources=resources,
                undelivered=undelivered,
                key=key,
            )
            if config.redrive_attempts > 0
            else None
        )
        triggers = Triggers(
            self, "Triggers", config=config, alias=job.alias, failures=failures, job_queue_name=jobs_name, key=key
        )
        if config.schedules:
            Schedules(
                self,
                "Schedules",
                config=config,
                alias=job.alias,
                scripts_uri=scripts.uri,
                failures=failures,
                key_statements=key_statements(key, "sqs"),
            )
        workflow = Workflow(self, "Workflow", config=config, alias=job.alias) if config.state_machine else None
        alarms = Alarms(
            self,
            "Alarms",
            rules=[
                *job_rules(config, job.function),
                *(() if config.durable is None else execution_rules(job.function)),
                *sweeper_rules(config, sweeper.function),
                *queue_rules(config, failures, undelivered, triggers.queue),
                *(() if redrive is None else redrive_rules(redrive.function, redrive.parked)),
                *(() if config.gradual_deployment is None else (deployment_rule(job.alias),)),
            ],
            email=config.alarm_email,
            key=key,
        )
        if config.gradual_deployment is not None:
            alarm = alarms.alarms["NewVersionFails"]
            GradualDeployment(self, "Deployment", strategy=config.gradual_deployment, alias=job.alias, alarm=alarm)
        if config.image_uri is not None and not config.image_uri.is_pinned:
            Annotations.of(self).add_warning_v2(
                "soal:tag",
                "image_uri is a tag: Lambda keeps the image that it names now; name a digest to deploy another",
            )
        if config.durable is not None:
            Annotations.of(self).add_warning_v2(
                "soal:durable",
                "durable is set: a function that is there and is not durable is replaced by one of another name, and"
                " its versions are deleted; runs that are on their way there end as killed runs do",
            )
        if unknown := unknown_predecessors(config):
            Annotations.of(self).add_warning_v2(
                "soal:predecessor",
                f"{', '.join(unknown)}, which turns does not name: its first turn comes when that job has completed one"
                " elsewhere, at the same lock service",
            )
        page = dashboard(
            self,
            alarms=alarms,
            job=job.function,
            sweeper=sweeper.function,
            failed=[failures] if redrive is None else [failures, redrive.parked],
            is_durable=config.durable is not None,
        )
        if lake.is_empty:
            Annotations.of(self).add_warning_v2(
                "soal:no-data", "no data is named: jobs can write no table; set data=bucket/prefix or lake_bucket=true"
            )
        outputs = {
            "FunctionName": job.function.function_name,
            "FunctionArn": job.function.function_arn,
            "InvokeArn": job.alias.function_arn,
            "SweeperName": sweeper.function.function_name,
            "CheckpointBucket": checkpoints.bucket.bucket_name,
            "ScriptBucket": scripts.uri,
            "LogGroup": job.log_group.log_group_name,
            "FailureQueueUrl": failures.queue_url,
            "UndeliveredQueueUrl": undelivered.queue_url,
            "AlarmTopicArn": alarms.topic.topic_arn,
            "DashboardName": page.dashboard_name,
            **({} if lake.bucket is None else {"LakeBucket": lake.bucket.bucket_name}),
            **({} if locks is None else {"LockTable": locks.table.table_name}),
            **(
                {}
                if triggers.queue is None
                else {"JobQueueArn": triggers.queue.queue_arn, "JobQueueUrl": triggers.queue.queue_url}
            ),
            **({} if workflow is None else {"StateMachineArn": workflow.machine.ref}),
            **({} if redrive is None else {"ParkedQueueUrl": redrive.parked.queue_url}),
        }
        for name, value in outputs.items():
            CfnOutput(self, name, value=value)
