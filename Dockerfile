# docker build -t hemiola . && docker run --rm hemiola run all-reduce/ring --machine dgx-h100 --size 1MiB
FROM debian:12 AS build
COPY . /hemiola
RUN bash -c 'set -e; source /hemiola/tools/setup; install_missing "${build_packages[@]}"; \
    build_preset release -DHEMIOLA_TESTS=OFF -DHEMIOLA_BENCHMARKS=OFF -DHEMIOLA_PYTHON=OFF -DHEMIOLA_REPORT=OFF; \
    cmake --install build/release --prefix /opt/hemiola --strip'

FROM debian:12-slim
RUN apt-get update -q \
    && apt-get install -q -y --no-install-recommends \
       libfmt9 libyaml-cpp0.7 libpugixml1v5 zlib1g libprotobuf32 libsqlite3-0 \
       libarchive13 libsimdjson14 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/hemiola /opt/hemiola
COPY --from=build /hemiola/examples /opt/hemiola/examples
WORKDIR /opt/hemiola
ENTRYPOINT ["/opt/hemiola/bin/hemiola"]
