# The function's image. `soal image build` builds it; `soal image test` proves it, `soal image size` measures it.
#
# BASE is any image with Python 3.11 or newer as python3: AWS's own, or a relative of Debian. What is installed to build
# stays in the builder: the image is the base and /opt/soal.
# The digest is that of the tag in June 2026 as another project has it (nationalarchives/ds-caselaw-data-enrichment-service,
# pull request 1948): it was written down where no registry could be reached. Docker pulls nothing else by it than what
# AWS has put into this repository, and `soal image build` refuses a base that is not the system and Python of the tag.
# `soal image pin` writes the present digest, on a machine that reaches the registry.
ARG BASE=public.ecr.aws/lambda/python:3.13@sha256:5dd3e2c637709e8437ef7b2ea42ebeee9824e62d2f6ba7afe788a4fd6e2a96f0

FROM ${BASE} AS builder
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
ENV LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
# The secret `ca` (a PEM file) is for networks that end TLS themselves; it is trusted in the builder only.
# hadolint ignore=DL3008,DL3040,DL3041
RUN --mount=type=secret,id=ca \
    if command -v apt-get; then \
        apt-get update; \
        apt-get install --yes --no-install-recommends binutils ca-certificates openjdk-17-jdk-headless maven python3-venv; \
        apt-get clean; rm -rf /var/lib/apt/lists/*; \
        anchors=/usr/local/share/ca-certificates trust=update-ca-certificates; \
    else \
        dnf install --assumeyes --setopt=install_weak_deps=False \
            binutils java-17-amazon-corretto-devel java-17-amazon-corretto-jmods maven-amazon-corretto17; \
        dnf clean all; \
        anchors=/etc/pki/ca-trust/source/anchors trust=update-ca-trust; \
    fi; \
    if [ -s /run/secrets/ca ]; then \
        awk -v to="$anchors" '/BEGIN CERT/ { n++ } n { print > (to "/build-" n ".crt") }' /run/secrets/ca; \
        "$trust"; \
    fi
WORKDIR /build

# Java: only the modules that Spark uses, and the archive of their classes, on which Spark's own is built.
COPY image/java/modules.txt image/java/
RUN jlink --add-modules "$(grep -v '^#' image/java/modules.txt | paste -sd,)" --output /opt/soal/java \
        --strip-java-debug-attributes --no-header-files --no-man-pages --compress=2 \
        --exclude-files='glob:/java.desktop/lib/lib*.so' \
    && /opt/soal/java/bin/java -Xshare:dump

# Python packages, by hash; PySpark without what image/spark/missing.toml and image/jars/replaced.txt name.
COPY requirements/uv.txt requirements/build.txt requirements/runtime.txt requirements/
RUN --mount=type=cache,target=/root/.cache \
    python3 -m venv /opt/uv \
    && PIP_CERT="$SSL_CERT_FILE" /opt/uv/bin/pip install --quiet --require-hashes --requirement requirements/uv.txt \
    && /opt/uv/bin/uv pip install --quiet --link-mode copy --python "$(command -v python3)" --target /opt/soal/python \
        --build-constraint requirements/build.txt --config-settings-package pyspark:--build-option=--compression=stored \
        --require-hashes --requirement requirements/runtime.txt
# The variant full of the image has more packages and more of PySpark's jars.
ARG VARIANT=slim
COPY requirements/full.txt requirements/
RUN --mount=type=cache,target=/root/.cache \
    case "$VARIANT" in \
        slim) ;; \
        full) \
            /opt/uv/bin/uv pip install --quiet --link-mode copy --python "$(command -v python3)" \
                --target /opt/soal/python --require-hashes --requirement requirements/full.txt \
            ;; \
        *) echo "VARIANT is slim or full, not $VARIANT" >&2; exit 1 ;; \
    esac
COPY handler/__init__.py handler/
COPY handler/spark/__init__.py handler/spark/missing_dependencies.py handler/spark/
COPY scripts/__init__.py scripts/
COPY scripts/image/__init__.py scripts/image/trim.py scripts/image/
COPY soal/__init__.py soal/source_paths.py soal/
COPY image/spark/missing.toml image/spark/
COPY image/jars/replaced.txt image/jars/
# Wheels carry tables for debuggers, forty megabytes of them; what auditwheel has put beside them does not bear the tool.
RUN python3 -m scripts.image.trim /opt/soal/python/pyspark "$VARIANT" \
    && find /opt/soal/python -name '*.so*' -not -path '*.libs/*' -exec strip --strip-unneeded {} +

# Jars beside PySpark's: resolved by Maven, checked against their sums; the log store, compiled.
COPY image/jars/pom.xml image/jars/jars.sha256 image/jars/
COPY image/full/pom.xml image/full/jars.sha256 image/full/
COPY image/logstore image/logstore
RUN --mount=type=cache,target=/root/.m2 \
    for list in image/jars image/full; do \
        if [ "$list" = image/full ] && [ "$VARIANT" != full ]; then continue; fi; \
        mvn --quiet --batch-mode --file "$list/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
            -DoutputDirectory=/opt/soal/jars; \
        sed 's#  #  /opt/soal/jars/#' "$list/jars.sha256" | sha256sum --quiet --check --strict; \
    done
RUN mkdir classes \
    && find image/logstore/src/main/java -name '*.java' -exec javac --release 17 -encoding UTF-8 -proc:none -nowarn \
        -cp '/opt/soal/jars/*:/opt/soal/python/pyspark/jars/*' -d classes {} + \
    && if [ -d image/logstore/src/main/resources ]; then cp -r image/logstore/src/main/resources/. classes; fi \
    && jar --create --file /opt/soal/jars/soal-logstore.jar --date=2020-01-01T00:00:00Z -C classes . \
    && java -cp '/opt/soal/jars/*:/opt/soal/python/pyspark/jars/*' io.soal.build.PatchedClasses \
        /opt/soal/jars/soal-literal.jar /opt/soal/python/pyspark/jars/hadoop-client-api-*.jar \
        /opt/soal/python/pyspark/jars/spark-*.jar /opt/soal/jars/iceberg-spark-runtime-*.jar \
        /opt/soal/jars/hadoop-aws-*.jar
# Jars without what nothing here reads: names of local variables, native libraries of other systems.
COPY image/jars/Slim.java image/jars/unwanted.txt image/jars/
RUN java --add-exports java.base/jdk.internal.org.objectweb.asm=ALL-UNNAMED image/jars/Slim.java \
        image/jars/unwanted.txt /opt/soal/jars/*.jar /opt/soal/python/pyspark/jars/*.jar

COPY image/spark /opt/soal/spark
COPY safewriter /opt/soal/python/safewriter
# The handler lies apart from what a job's Python imports from: a job may have a module `handler` of its own.
COPY handler /opt/soal/function/handler
RUN rm -rf /opt/soal/python/bin \
    && python3 -m compileall -q -j 0 /opt/soal/python /opt/soal/function
# Java compares the time stamps of jars with those that the archive was made with.
RUN find /opt/soal -name '*.jar' -exec touch --date=2020-01-01T00:00:00Z {} +

FROM builder AS trainer
COPY requirements/local.txt requirements/
RUN --mount=type=cache,target=/root/.cache \
    /opt/uv/bin/uv pip install --quiet --python "$(command -v python3)" --target /opt/trainer \
        --require-hashes --requirement requirements/local.txt
# Only what the training uses: any other change must not cost another one.
COPY image/archive /opt/trainer/image/archive
COPY scripts/__init__.py /opt/trainer/scripts/
COPY soal/__init__.py /opt/trainer/soal/
COPY soal/local/__init__.py soal/local/names.py /opt/trainer/soal/local/
COPY soal/testing/__init__.py /opt/trainer/soal/testing/
COPY soal/testing/s3 /opt/trainer/soal/testing/s3
COPY scripts/image/__init__.py scripts/image/training.py scripts/image/closures.py scripts/image/unsigned.py \
     /opt/trainer/scripts/image/
WORKDIR /opt/trainer
ENV PYTHONPATH=/opt/soal/python:/opt/soal/function:/opt/trainer
RUN python3 -m scripts.image.training /opt/soal "$VARIANT"

# hadolint ignore=DL3006
FROM ${BASE}
ARG VARIANT=slim
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="SoAL" \
      org.opencontainers.image.description="Spark on AWS Lambda, without lost writes" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY LICENSE /opt/soal/
COPY --from=trainer /opt/soal/java /opt/soal/java
COPY --from=trainer /opt/soal/python /opt/soal/python
COPY --from=trainer /opt/soal/function /opt/soal/function
COPY --from=trainer /opt/soal/jars /opt/soal/jars
COPY --from=trainer /opt/soal/unsigned /opt/soal/unsigned
COPY --from=trainer /opt/soal/closures /opt/soal/closures
COPY --from=trainer /opt/soal/spark /opt/soal/spark
COPY --from=trainer /opt/soal/spark.jsa /opt/soal/spark.jsa
# On Lambda /tmp and /dev/shm are this function's alone: the handler empties them between jobs.
ENV PYTHONPATH=/opt/soal/python:/opt/soal/function PYTHONDONTWRITEBYTECODE=1 LANG=C.UTF-8 SOAL_OWN_DIRECTORIES=/tmp:/dev/shm \
    SOAL_IMAGE_VARIANT=${VARIANT}
WORKDIR /opt/soal
ENTRYPOINT ["python3", "-m", "awslambdaric"]
CMD ["handler.app.lambda_handler"]
