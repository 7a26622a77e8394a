"""The function's image as an account on this machine takes it: under a name of the account's own registry.

Lambda's service gives an image its runtime interface. Here AWS's emulator of it is one layer on top, and may bring jars
that a derived image adds.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scripts.account.server import ACCOUNT
from scripts.image.docker import require
from soal.local.names import REGION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scripts.image.docker import Docker

_RIE: Final = "soal-rie"
_EXTRA: Final = "/opt/soal/extra/"
_BUILD_TIMEOUT_S: Final = 300


@contextmanager
def image_of_account(docker: Docker, image: str, rie: Path, tag: str, jars: Sequence[Path] = ()) -> Iterator[str]:
    """Make the image under its name in the account, which is `image_uri` for the stack; remove it at the end, when no
    container has it any more.
    """
    require(docker, image)
    name = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/soal:{tag}"
    words = list(docker.entry(image, ""))[:-1]
    with tempfile.TemporaryDirectory(prefix="soal-image-") as folder:
        context = Path(folder)
        shutil.copy2(rie, context / _RIE)
        extra = context / "extra"
        extra.mkdir()
        for jar in jars:
            shutil.copy2(jar, extra)
        copies = [f"COPY {_RIE} /{_RIE}", f"COPY extra {_EXTRA}"]
        lines = [f"FROM {image}", *copies, f"ENTRYPOINT {json.dumps([f'/{_RIE}', *words])}"]
        (context / "Dockerfile").write_text("\n".join(lines) + "\n", encoding="utf-8")
        docker.read("build", "--quiet", "--tag", name, folder, timeout_s=_BUILD_TIMEOUT_S)
    try:
        yield name
    finally:
        docker.read("image", "rm", "--force", name, timeout_s=_BUILD_TIMEOUT_S)
