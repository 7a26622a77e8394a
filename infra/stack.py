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
from infra.environment import Resources, job_environment, microvm_environment, sweeper_environment
from infra.failures import FailureQueue, UndeliveredQueue, job_queue_name, queue_arn
from infra.function import JobFunction
from infra.function_role import Shared
from infra.image import Image
from infra.lake import Lake
from infra.locks import LockTable
from infra.microvm import Microvm
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
        self._config, self._key = config, own_key(self) if config.kms else None
        self._keep()
        self._run()
        self._start()
        self._watch()
        self._warn()
        for name, output in self._outputs().items():
            if output is not None:
                CfnOutput(self, name, value=output)

    def _keep(self) -> None:
        """Create buckets, queues and the table of locks."""
        config, key = self._config, self._key
        self._checkpoints = CheckpointBucket(self, "Checkpoints", days=config.checkpoint_days, key=key)
        self._scripts = Scripts(self, "Scripts", existing=config.scripts, key=key)
        self._lake = Lake(self, "Lake", config=config, key=key)
        self._jobs_name = job_queue_name(config.stack_name)
        self._jobs_arn = queue_arn(self._jobs_name) if config.queue else None
        self._failed = FailureQueue(self, "Failures", jobs_arn=self._jobs_arn, key=key)
        self._undelivered = UndeliveredQueue(self, "Undelivered", key=key).queue
        self._locks = LockTable(self, "Locks") if config.coordination == "dynamodb" else None

    def _run(self) -> None:
        """Create the functions: of jobs, of the sweeper, of the redrive."""
        config, key, locks = self._config, self._key, self._locks
        checkpoints, scripts, lake = self._checkpoints, self._scripts, self._lake
        image = Image(self, config)
        network = Network(
            self,
            "Network",
            config=config,
            locks=None if locks is None else locks.table,
            buckets=[checkpoints.bucket.bucket_arn, *scripts.bucket_arns, *lake.bucket_arns],
        )
        shared = Shared(config, image, key, network)
        locks_uri = "" if locks is None else locks.uri
        resources = Resources(Aws.STACK_NAME, checkpoints.bucket.bucket_name, scripts.uri, locks_uri)
        of_job = [
            *checkpoints.job_statements(),
            *scripts.job_statements(),
            *lake.job_statements(),
            *catalog.job_statements(config),
            *secrets.job_statements(config),
            *(() if locks is None else locks.job_statements()),
        ]
        self._job = JobFunction(
            self,
            "Runtime",
            shared,
            statements=[*of_job, *key_statements(key, "s3", "sqs", "lambda")],
            environment=job_environment(config, resources),
            failures=self._failed.for_functions,
        )
        self._microvm = None
        if config.microvm_timeout_s is not None and config.image_uri is not None:
            self._microvm = Microvm(
                self,
                "Microvm",
                shared,
                image_uri=config.image_uri,
                duration_s=config.microvm_timeout_s,
                statements=[*of_job, *key_statements(key, "s3")],
                environment=microvm_environment(config, resources),
            )
        self._sweeper = Sweeper(
            self,
            "Sweeper",
            shared,
            statements=[
                *checkpoints.sweeper_statements(),
                *lake.sweeper_statements(),
                *catalog.sweeper_statements(config),
                *secrets.sweeper_statements(config),
                *key_statements(key, "s3", "lambda"),
            ],
            environment=sweeper_environment(config, resources),
            undelivered=self._undelivered,
        )
        self._redrive = None
        if config.redrive_attempts > 0:
            self._redrive = Redrive(
                self,
                "Redrive",
                shared,
                alias=self._job.alias,
                failures=self._failed.queue,
                jobs_arn=self._jobs_arn,
                key_statements=key_statements(key, "sqs", "lambda"),
                resources=resources,
                undelivered=self._undelivered,
            )

    def _start(self) -> None:
        """Create what starts jobs: triggers, schedules, the state machine."""
        config, key, alias, failures = self._config, self._key, self._job.alias, self._failed.queue
        self._triggers = Triggers(
            self, "Triggers", config=config, alias=alias, failures=failures, job_queue_name=self._jobs_name, key=key
        )
        if config.schedules:
            Schedules(
                self,
                "Schedules",
                config=config,
                alias=alias,
                scripts_uri=self._scripts.uri,
                failures=failures,
                key_statements=key_statements(key, "sqs"),
            )
        self._workflow = Workflow(self, "Workflow", config=config, alias=alias) if config.state_machine else None

    def _watch(self) -> None:
        """Create the alarms, the deployment that one of them ends, and the dashboard."""
        config, job, sweeper, redrive = self._config, self._job, self._sweeper.function, self._redrive
        failures = self._failed.queue
        self._alarms = Alarms(
            self,
            "Alarms",
            rules=[
                *job_rules(config, job.function),
                *(() if config.durable is None else execution_rules(job.function)),
                *sweeper_rules(config, sweeper),
                *queue_rules(config, failures, self._undelivered, self._triggers.queue),
                *(() if redrive is None else redrive_rules(redrive.function, redrive.parked)),
                *(() if config.gradual_deployment is None else (deployment_rule(config, job.alias),)),
            ],
            email=config.alarm_email,
            key=self._key,
        )
        if config.gradual_deployment is not None:
            alarm = self._alarms.alarms["NewVersionFails"]
            GradualDeployment(self, "Deployment", strategy=config.gradual_deployment, alias=job.alias, alarm=alarm)
        self._page = dashboard(
            self,
            alarms=self._alarms,
            job=job.function,
            sweeper=sweeper,
            failed=[failures] if redrive is None else [failures, redrive.parked],
            is_durable=config.durable is not None,
        )

    def _warn(self) -> None:
        config, warn = self._config, Annotations.of(self).add_warning_v2
        if config.image_uri is not None and not config.image_uri.is_pinned:
            warn(
                "soal:tag",
                "image_uri is a tag: Lambda keeps the image that it names now; name a digest to deploy another",
            )
        if config.durable is not None:
            warn(
                "soal:durable",
                "durable is set: a function that is there and is not durable is replaced by one of another name, and"
                " its versions are deleted; runs that are on their way there end as killed runs do",
            )
        if config.capacity_provider is not None:
            warn(
                "soal:capacity",
                "capacity_provider is set: each version of the function keeps environments, three or more, for which"
                " you pay until the version is deleted; a function that is there and has no provider is replaced by"
                " one of another name",
            )
        if config.microvm_timeout_s is not None:
            warn(
                "soal:microvm",
                "microvm_timeout_s is set: a deployment builds the MicroVM image, and each version of it costs storage"
                " until it is deleted; the stack cannot be deleted while one of its MicroVMs runs",
            )
        if unknown := unknown_predecessors(config):
            warn(
                "soal:predecessor",
                f"{', '.join(unknown)}, which turns does not name: its first turn comes when that job has completed one"
                " elsewhere, at the same lock service",
            )
        if self._lake.is_empty:
            warn(
                "soal:no-data", "no data is named: jobs can write no table; set data=bucket/prefix or lake_bucket=true"
            )

    def _outputs(self) -> dict[str, str | None]:
        job, bucket, locks, queue = self._job, self._lake.bucket, self._locks, self._triggers.queue
        return {
            "FunctionName": job.function.function_name,
            "FunctionArn": job.function.function_arn,
            "InvokeArn": job.alias.function_arn,
            "SweeperName": self._sweeper.function.function_name,
            "CheckpointBucket": self._checkpoints.bucket.bucket_name,
            "ScriptBucket": self._scripts.uri,
            "LogGroup": job.log_group.log_group_name,
            "FailureQueueUrl": self._failed.queue.queue_url,
            "UndeliveredQueueUrl": self._undelivered.queue_url,
            "AlarmTopicArn": self._alarms.topic.topic_arn,
            "DashboardName": self._page.dashboard_name,
            "LakeBucket": None if bucket is None else bucket.bucket_name,
            "LockTable": None if locks is None else locks.table.table_name,
            "JobQueueArn": None if queue is None else queue.queue_arn,
            "JobQueueUrl": None if queue is None else queue.queue_url,
            "StateMachineArn": None if self._workflow is None else self._workflow.machine.ref,
            "MicrovmLaunch": None if self._microvm is None else self._microvm.launch,
            "ParkedQueueUrl": None if self._redrive is None else self._redrive.parked.queue_url,
            "RedriveName": None if self._redrive is None else self._redrive.function.function_name,
        }
