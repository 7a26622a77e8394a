"""What holds for every test: no real account can be reached by accident, and a failed property can be played again."""

from __future__ import annotations

import os

from hypothesis import settings

# Before any test module is imported: what a developer's shell says about AWS, Spark or SoAL is not part of a test.
_FOREIGN = ("AWS_", "SW_", "SOAL_", "SPARK_", "PYSPARK_", "LAMBDA_", "POWERTOOLS_", "SCRIPT_BUCKET")
for _name in [name for name in os.environ if name.startswith(_FOREIGN)]:
    del os.environ[_name]
os.environ.update(
    AWS_ACCESS_KEY_ID="testing",
    AWS_SECRET_ACCESS_KEY="testing",
    AWS_REGION="us-east-1",
    AWS_DEFAULT_REGION="us-east-1",
    AWS_CONFIG_FILE=os.devnull,
    AWS_SHARED_CREDENTIALS_FILE=os.devnull,
    AWS_EC2_METADATA_DISABLED="true",
    # A client whose endpoint was forgotten must fail, not call Amazon. Port 9 (discard) has no listener.
    AWS_ENDPOINT_URL="http://127.0.0.1:9",
)

# No time limit for one example (tests assert no times); a failure prints what to paste to see it again.
settings.register_profile("soal", deadline=None, print_blob=True)
settings.load_profile("soal")
