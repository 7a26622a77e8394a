"""Our own jars: soal-logstore.jar from image/logstore/src/main/java, and soal-literal.jar, which a program in that jar
makes from classes of Hadoop and Spark (io.soal.build.PatchedClasses).

The compiler is javac if there is one, else ECJ, Eclipse's compiler: one jar that needs only a Java runtime.
"""

from __future__ import annotations

import os
import zipfile
from typing import TYPE_CHECKING, Final

from handler.spark.classpath import LITERAL
from scripts.image.closures import STAMP_S
from scripts.provision.jars import LOG_STORE_JAR, OWN_JARS, admit, sha256_of
from scripts.provision.place import fingerprint
from scripts.provision.steps import Found, run
from soal.console.problem import Failure

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scripts.provision.java import Java, Maven
    from scripts.provision.place import Place

# The last ECJ that runs on Java 17.
_ECJ: Final = "org.eclipse.jdt:ecj:3.42.0"
_ECJ_JAR: Final = "ecj-3.42.0.jar"
_ECJ_SHA256: Final = "29f6d3918ee02db4400c103bc25dd90a22491c3a395867d9393070cb96a7dd29"
_QUICK: Final = "-XX:TieredStopAtLevel=1"
_FLAGS: Final = ("--release", "17", "-encoding", "UTF-8", "-proc:none", "-nowarn")
# The oldest time that a zip can store, so that equal sources make equal jars.
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_LITERAL_SOURCES: Final = (
    "hadoop-client-api-",
    "hadoop-aws-",
    "spark-",
    "iceberg-spark-runtime-",
)


def ensure_logstore(place: Place, java: Java, maven: Callable[[], Maven]) -> Found:
    """Compile if sources, class path or compiler have changed, or if the jar was not made from them."""
    main = place.root / "image" / "logstore" / "src" / "main"
    sources = sorted((main / "java").rglob("*.java"))
    jar, literal = place.jars / LOG_STORE_JAR, place.jars / LITERAL
    stamp = place.stamp("logstore")
    resources = sorted(path for path in (main / "resources").rglob("*") if path.is_file())
    lists = [place.root / "image" / "jars" / "jars.sha256", place.requirements / "runtime.txt"]
    inputs = fingerprint([*sources, *resources, *lists, java.version, str(java.javac)])
    if jar.exists() and literal.exists() and stamp.matches(f"{inputs} {sha256_of(jar)} {sha256_of(literal)}"):
        return Found("log store")
    stamp.clear()
    with place.scratch() as scratch:
        classes = scratch / "classes"
        compile_java(place, java, maven, sources, classes)
        members = {str(path.relative_to(classes)): path for path in classes.rglob("*.class")}
        members |= {str(path.relative_to(main / "resources")): path for path in resources}
        fresh = scratch / LOG_STORE_JAR
        pack(members, fresh)
        fresh.replace(jar)
        _make_literal(place, java, jar, scratch / LITERAL)
        (scratch / LITERAL).replace(literal)
    stamp.write(f"{inputs} {sha256_of(jar)} {sha256_of(literal)}")
    return Found(f"log store compiled with {'javac' if java.javac else 'ECJ'}", changed=True)


def _make_literal(place: Place, java: Java, tools: Path, jar: Path) -> None:
    jars = [*_spark_jars(place), *sorted(place.jars.glob("*.jar"))]
    sources = [path for path in jars if path.name.startswith(_LITERAL_SOURCES)]
    run(
        [java.java, _QUICK, "-cp", f"{tools}:{class_path(place)}", "io.soal.build.PatchedClasses", jar, *sources],
        act=f"making {jar.name}",
        todo="see above, then run scripts/setup again",
    )
    # Java compares the time stamps of jars with those in the class-data archive.
    os.utime(jar, (STAMP_S, STAMP_S))


def compile_java(place: Place, java: Java, maven: Callable[[], Maven], sources: list[Path], classes: Path) -> None:
    """Compile `sources` into the folder `classes`, against the jars of the image and of PySpark."""
    # Compiling a few files ends before optimising the compiler's own code pays off.
    compiler: list[str | Path]
    compiler = [java.javac, f"-J{_QUICK}"] if java.javac else [java.java, _QUICK, "-jar", _ecj(place, maven)]
    run(
        [*compiler, *_FLAGS, "-cp", class_path(place), "-d", classes, *sources],
        act=f"compiling {sources[0].parent}",
        todo="correct the Java sources, then run scripts/setup again",
    )


def pack(members: dict[str, Path], jar: Path) -> None:
    """Write a jar of `members` (name in the jar -> file). It depends only on their names and contents."""
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF", _EPOCH), "Manifest-Version: 1.0\r\n\r\n")
        for name in sorted(members):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), members[name].read_bytes(), zipfile.ZIP_DEFLATED)


def class_path(place: Place) -> str:
    """Return the class path: the jars of the image and of PySpark, without our own."""
    jars = [path for path in place.jars.glob("*.jar") if path.name not in OWN_JARS]
    return ":".join(str(path) for path in sorted(jars) + _spark_jars(place))


def _spark_jars(place: Place) -> list[Path]:
    spark = sorted(place.venv.glob("lib/python3.*/site-packages/pyspark/jars/*.jar"))
    if not spark:
        raise Failure(f"no jars of PySpark in {place.venv}", todo=f"remove {place.venv}, then run scripts/setup again")
    return spark


def _ecj(place: Place, maven: Callable[[], Maven]) -> Path:
    tools = place.home / "tools"
    ecj = tools / _ECJ_JAR
    if not ecj.exists() or sha256_of(ecj) != _ECJ_SHA256:
        with place.scratch() as scratch:
            maven().copy_artifact(_ECJ, scratch)
            admit(scratch, tools, {_ECJ_JAR: _ECJ_SHA256})
    return ecj
