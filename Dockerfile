# Two stages: the first installs and bundles, the second holds one folder of JavaScript and Node itself, no shell and no package manager.

FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc rolldown.config.ts ./
COPY src src
COPY sinks sinks
COPY config/templates config/templates
# Builds too: `prepare` runs the bundler.
RUN npm ci
# The volume's owner comes from the image: an empty folder that belongs to the user below.
RUN mkdir -p /empty

FROM gcr.io/distroless/nodejs24-debian12:nonroot
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/dist dist
COPY config config
COPY LICENSE ./
COPY --from=build --chown=65532:65532 /empty /var/lib/foreshock
COPY --from=build --chown=65532:65532 /empty /var/log/foreshock
ENV NODE_ENV=production
USER 65532:65532
VOLUME ["/var/lib/foreshock", "/var/log/foreshock"]
EXPOSE 9464
# Asks the admin endpoint where the configuration puts it; with admin.listen off or on port 0 there is none to ask: use --no-healthcheck.
HEALTHCHECK --interval=30s --timeout=10s --start-period=15s CMD ["/nodejs/bin/node", "/app/dist/foreshock.mjs", "status"]
# Node is PID 1: it handles SIGTERM and SIGINT itself and reaps the children of its own that it starts.
ENTRYPOINT ["/nodejs/bin/node", "/app/dist/foreshock.mjs"]
CMD ["run"]
