"""The options of the JVM: heap, collector, compiler, archive, and those that let Spark run on Java 17."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from handler.spark.archive import archive_options
from handler.spark.installation import spark_file
from handler.spark.machine import heap_mb

if TYPE_CHECKING:
    from collections.abc import Mapping

    from handler.sandbox.sandbox import Sandbox
    from handler.settings import HandlerSettings
    from handler.spark.machine import Machine

__all__ = ["MODULE_OPTIONS", "jvm_options"]

_SERIAL_GC_CORES_MAX: Final = 2
_C1_TIMEOUT_MAX_MS: Final = 60_000
# Ten times Java's own thresholds: most code that the optimising compiler compiles in a job's first minute does not run
# often enough to pay for it. `scripts/lab bench start --timeout-s 300` measures short jobs.
_C2_LATER: Final = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)

# Options of Spark's own launcher (org.apache.spark.launcher.JavaModuleOptions in 4.1.4), without the vector module:
# only MLlib uses it, and each start would load another incubator module. A test compares the two.
MODULE_OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/java.lang",
            "java.base/java.lang.invoke",
            "java.base/java.lang.reflect",
            "java.base/java.io",
            "java.base/java.net",
            "java.base/java.nio",
            "java.base/java.util",
            "java.base/java.util.concurrent",
            "java.base/java.util.concurrent.atomic",
            "java.base/jdk.internal.ref",
            "java.base/sun.nio.ch",
            "java.base/sun.nio.cs",
            "java.base/sun.security.action",
            "java.base/sun.util.calendar",
            "java.security.jgss/sun.security.krb5",
        )
    ),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--enable-native-access=ALL-UNNAMED",
)


def jvm_options(
    conf: Mapping[str, str], sandbox: Sandbox, settings: HandlerSettings, machine: Machine, total_ms: int
) -> tuple[str, ...]:
    """Return the options for a job with the settings `conf` and at most `total_ms` of time."""
    c1 = settings.jit == "c1" or (settings.jit == "auto" and total_ms <= _C1_TIMEOUT_MAX_MS)
    serial = machine.cores <= _SERIAL_GC_CORES_MAX
    return (
        f"-Xmx{heap_mb(conf, machine)}m",
        "-XX:+UseSerialGC" if serial else "-XX:+UseParallelGC",
        # The initial size: Java's own choice for a function's memory is 16 MB, with a collection whenever they are
        # full.
        "-XX:NewSize=96m",
        # The optimising compiler pays only in jobs of more than about half a minute.
        *(("-XX:TieredStopAtLevel=1",) if c1 else _C2_LATER),
        # Touching the heap for the first time page by page takes a twentieth of a cold run.
        *(("-XX:+UseTransparentHugePages",) if machine.has_huge_pages else ()),
        # Otherwise a driver would continue half-dead after an OutOfMemoryError; the exit code is 3.
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:-UsePerfData",
        *archive_options(settings.soal_home, sandbox.archive_log),
        *MODULE_OPTIONS,
        # io.soal.host.BetweenJobs needs this to restore Java's security properties.
        "--add-opens=java.base/java.security=ALL-UNNAMED",
        # XML in a row, or a schema named in a table's SQL, may name files and servers. Java's XML must not fetch them.
        "-Djavax.xml.accessExternalDTD=",
        "-Djavax.xml.accessExternalSchema=",
        f"-Djava.io.tmpdir={sandbox.tmp}",
        f"-Duser.home={sandbox.home}",
        f"-Dderby.system.home={sandbox.work}",
        # MySQL's driver, which Java loads with all others, would leave a thread, and the JVM could not be reused.
        "-Dcom.mysql.cj.disableAbandonedConnectionCleanup=true",
        f"-Dlog4j2.configurationFile={spark_file(settings.soal_home, 'log4j2.properties')}",
    )
