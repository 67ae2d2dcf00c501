# syntax=docker/dockerfile:1
#
#   docker build -t conclave .
#   docker run --rm -p 127.0.0.1:8420:8420 -v conclave-data:/var/lib/conclave conclave
#
# The first start prints an owner key and a password once.

FROM rust:1-slim-bookworm AS build
# The C compiler is for SQLite and for the allocator, which are compiled in.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends build-essential pkg-config \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package conclave \
    && install -D -m 755 "${CARGO_TARGET_DIR:-target}/release/conclave" /out/conclave

FROM debian:bookworm-slim
# Certificates, to know a provider by; nothing else is added.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 conclave \
    && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin conclave \
    && install -d -m 700 -o conclave -g conclave /var/lib/conclave
COPY --from=build /out/conclave /usr/local/bin/conclave
USER 10001:10001
WORKDIR /var/lib/conclave
VOLUME /var/lib/conclave
EXPOSE 8420
# SIGTERM drains; see docs/guide/operations.md.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/conclave"]
CMD ["serve", "--listen", "0.0.0.0:8420", "--data", "/var/lib/conclave", "--log-format", "json"]
