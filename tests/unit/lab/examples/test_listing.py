"""The lab lists every script of PySpark's examples, with arguments for those that require some."""

from __future__ import annotations

import re

from tests.lab.examples import listing
from tests.lab.examples.listing import examples, folder


def test_each_script_that_pyspark_brings_is_an_example() -> None:
    """But for the files that make packages of their folders."""
    names = [example.name for example in examples()]
    assert len(names) > 100
    assert {"pi.py", "sql/arrow.py", "ml/kmeans_example.py", "streaming/queue_stream.py"} <= set(names)
    assert not [name for name in names if name.endswith("__init__.py")]
    assert names == sorted(names)


def test_whoever_asks_for_arguments_gets_some() -> None:
    """Those that end with a message about their usage; the others take what they have by default."""
    asks = re.compile(r"len\(sys\.argv\) (?:!=|<) [2-9]|ArgumentParser\(")
    missing = [
        example.name
        for example in examples()
        if asks.search((folder() / example.name).read_text()) and not example.arguments and example.can_run
    ]
    assert missing == []


def test_what_is_said_of_an_example_is_said_of_one_that_there_is() -> None:
    """A new version of PySpark may have others."""
    names = {example.name for example in examples()}
    told = {*listing._ARGUMENTS, *listing._NEEDS, *listing._ENDLESS}
    assert told <= names


def test_an_example_that_waits_for_words_is_not_run() -> None:
    """Nobody sends it any; one that needs a service for a part of its work runs up to there."""
    by_name = {example.name: example for example in examples()}
    assert not by_name["streaming/network_wordcount.py"].can_run
    assert by_name["sql/datasource.py"].can_run
    waits = [name for name in by_name if "socketTextStream" in (folder() / name).read_text()]
    assert not [name for name in waits if by_name[name].can_run]
