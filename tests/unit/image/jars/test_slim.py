"""The image's Java program Slim.java removes unused services, native libraries and debug names from jars."""

from __future__ import annotations

import platform
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

ON_ARM = platform.machine() == "aarch64"
IMAGE = Path(__file__).parents[4] / "image"
COUNT = """
public class Count {
    private final int start;
    public Count(int start) { this.start = start; }
    public int next(int step) { int sum = start + step; return sum; }
}
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("javac") is None, reason="needs a Java compiler; apt install openjdk-17-jdk-headless")
def test_jars_lose_what_nothing_reads(tmp_path: Path) -> None:
    """Native libraries of other platforms, variable names and unused services are dropped; this platform's stay."""
    (tmp_path / "Count.java").write_text(COUNT)
    subprocess.run(["javac", "-g", "Count.java"], cwd=tmp_path, check=True, timeout=60)
    compiled = (tmp_path / "Count.class").read_bytes()
    assert b"sum" in compiled
    services = "META-INF/services/org.apache.hadoop.fs.FileSystem"
    jars = {
        "zstd-jni-1.jar": {"linux/amd64/a.so": b"", "linux/aarch64/a.so": b"", "win/amd64/a.dll": b""},
        "snappy-java-1.jar": {
            f"org/xerial/snappy/native/Linux/{name}/a.so": b"" for name in ("x86_64", "aarch64", "ppc64")
        },
        "hadoop-client-api-1.jar": {
            "org/apache/hadoop/yarn/YarnFileSystem.class": compiled,
            "Count.class": compiled,
            services: b"# all\norg.apache.hadoop.yarn.YarnFileSystem\norg.apache.hadoop.fs.LocalFileSystem\n",
        },
        "signed-1.jar": {"META-INF/A.SF": b"", "Count.class": compiled},
    }
    for name, members in jars.items():
        with zipfile.ZipFile(tmp_path / name, "w") as jar:
            for member, body in members.items():
                jar.writestr(member, body)
    export = ("--add-exports", "java.base/jdk.internal.org.objectweb.asm=ALL-UNNAMED")
    command = ["java", *export, *(str(IMAGE / "jars" / name) for name in ("Slim.java", "unwanted.txt")), *jars]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    left = {}
    for name in jars:
        with zipfile.ZipFile(tmp_path / name) as jar:
            left[name] = {member: jar.read(member) for member in jar.namelist()}
    assert set(left["zstd-jni-1.jar"]) == {f"linux/{'aarch64' if ON_ARM else 'amd64'}/a.so"}
    assert {name.split("/")[5] for name in left["snappy-java-1.jar"]} == {"aarch64" if ON_ARM else "x86_64"}
    hadoop = left["hadoop-client-api-1.jar"]
    assert set(hadoop) == {"Count.class", services}
    assert hadoop[services] == b"# all\norg.apache.hadoop.fs.LocalFileSystem\n"
    assert b"sum" not in hadoop["Count.class"]
    assert b"start" in hadoop["Count.class"]
    assert b"LineNumberTable" in hadoop["Count.class"]
    assert left["signed-1.jar"]["Count.class"] == compiled
