# docker build -t hemiola . && docker run --rm hemiola run all-reduce/ring --machine dgx-h100 --size 1MiB
FROM debian:12 AS build
COPY . /hemiola
RUN bash -c 'cd /hemiola && tools/wheel /wheels'

FROM debian:12-slim
RUN apt-get update -q \
    && apt-get install -q -y --no-install-recommends python3-venv \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /wheels /wheels
RUN python3 -m venv /opt/hemiola && /opt/hemiola/bin/pip install --no-cache-dir /wheels/*.whl && rm -r /wheels
COPY --from=build /hemiola/examples /opt/hemiola/examples
WORKDIR /opt/hemiola
ENTRYPOINT ["/opt/hemiola/bin/hemiola"]
