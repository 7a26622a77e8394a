"""An error of Spark's that names no next step gets one, by the text of its exception."""

from __future__ import annotations

import pytest

from handler.outcome.advice import advice_for
from handler.spark.missing_dependencies import Raised


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        (
            "java.nio.file.AccessDeniedException: s3a://lake/rooms/_delta_log: listObjects() on s3a://lake/rooms",
            "S3 has denied a request for s3a://lake/rooms/_delta_log: if the script or its arguments name that bucket",
        ),
        (
            "org.apache.hadoop.fs.s3a.UnknownStoreException: `s3a://no.such-bucket/rooms/_delta_log': listObjects()",
            "the bucket no.such-bucket does not exist: ",
        ),
        (
            "[REQUIRES_SINGLE_PART_NAMESPACE] spark_catalog requires a single-part namespace, but got `g`.`db`",
            "there is no catalog g: ",
        ),
    ],
)
def test_a_known_text_of_spark_has_a_cause_and_a_next_step(text: str, beginning: str) -> None:
    """Real Spark's are in `tests/integration/handler/test_spark_messages.py`."""
    (found,) = filter(None, [advice_for([Raised("Py4JJavaError", of_spark=True, text=text)])])
    assert found.text.startswith(beginning)
    assert advice_for([Raised("ValueError", of_spark=False, text=text)]) is None
    quoted = f"java.lang.NumberFormatException: For input string: {text}"
    assert advice_for([Raised("Py4JJavaError", of_spark=True, text=quoted)]) is None


def test_what_the_script_says_about_an_error_of_spark_is_not_in_the_advice() -> None:
    """Its own exception is the outermost."""
    gone = Raised("Py4JJavaError", of_spark=True, text="org.apache.hadoop.fs.s3a.UnknownStoreException: `s3a://gone/t'")
    own = Raised("ValueError", of_spark=False, text="no rooms today")
    assert [advice.says_all for advice in (advice_for([gone]), advice_for([own, gone])) if advice] == [True, False]
