import { rootCertificates } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { createHttpClient, type HttpApiClient, Informer, keyOf, requestJson } from '@keelson/client';
import {
  type ApiClient,
  type DiscoveredResource,
  type GroupVersionResource,
  isStatusError,
  statusErrors,
} from '@keelson/core';
import {
  type APIResourceList,
  isJsonObject,
  printableText,
  type SwaggerPart,
  swaggerPart,
} from '@keelson/core/internal';
import type { Clock, Counter, Gauge, Logger, Metrics, Service } from '@keelson/core/runtime';
import { APIService } from '@keelson/kinds';
import { type ResolveService, serviceResolver } from '../services/resolve-service.ts';

/** A client certificate and its key, PEM. */
export interface FrontProxyIdentity {
  readonly certificate: string;
  readonly key: string;
}

export interface AggregatedApisOptions {
  readonly client: ApiClient;
  /** The client certificate that identifies this server to aggregated servers; undefined: none. */
  readonly identity: () => FrontProxyIdentity | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** The result of checking the server of an APIService. */
interface Availability {
  readonly available: boolean;
  readonly reason: string;
  readonly message: string;
}

/** Intervals between the checks of an available and of an unavailable server. */
const healthyMs = 30_000;
const failingMs = 2_000;
const checkTimeoutMs = 5_000;
const documentBytes = 8 * 1024 * 1024;
const unknown: Availability = { available: false, reason: 'Unknown', message: 'not examined yet' };

/** The user for requests that this server sends on its own behalf. */
const ownHeaders = { 'X-Remote-User': 'system:kube-aggregator', 'X-Remote-Group': 'system:masters' };

/** An APIService whose API group is served by another server. */
class Entry {
  readonly service: APIService;
  availability: Availability = unknown;
  resources: APIResourceList | undefined;
  openApiHash: string | undefined;
  swagger: SwaggerPart | undefined;
  cancel: () => void = () => {};
  checking = false;
  stopped = false;

  constructor(service: APIService) {
    this.service = service;
  }

  get path(): string {
    const { group = '', version = '' } = this.service.spec;
    return `/apis/${group}/${version}`;
  }
}

/**
 * The API groups that other servers serve, according to the APIServices of the cluster. Each of these servers is
 * checked at intervals. The result is written to the condition Available of the APIService.
 */
export class AggregatedApis implements Service {
  readonly name = 'aggregated-apis';
  readonly #options: AggregatedApisOptions;
  readonly #resolve: ResolveService;
  readonly #informer: Pick<Informer<APIService>, 'start' | 'stop'>;
  /** By `group/version`. */
  readonly #entries = new Map<string, Entry>();
  readonly #unavailable: Gauge;
  readonly #failures: Counter;
  active = false;
  #generation = 0;

  constructor(options: AggregatedApisOptions) {
    const { client, clock } = options;
    const logger = options.logger.child({ component: this.name });
    this.#options = { ...options, logger };
    this.#resolve = serviceResolver(client);
    this.#unavailable = options.metrics.gauge({
      name: 'aggregator_unavailable_apiservice',
      help: 'Gauge of APIServices which are marked as unavailable broken down by APIService name.',
      labels: ['name'],
    });
    this.#failures = options.metrics.counter({
      name: 'aggregator_unavailable_apiservice_total',
      help: 'Counter of APIServices which are marked as unavailable broken down by APIService name and reason.',
      labels: ['name', 'reason'],
    });
    this.#informer = new Informer({
      client: client.resource(APIService),
      keep: (service) => service,
      clock,
      logger,
      handlers: {
        added: (service) => this.#put(service),
        updated: (service) => this.#put(service),
        deleted: (service) => this.#remove(service),
      },
    });
  }

  async start(): Promise<void> {
    await this.#informer.start();
  }

  async stop(): Promise<void> {
    await this.#informer.stop();
    for (const entry of this.#entries.values()) stopEntry(entry);
    this.#entries.clear();
  }

  get generation(): number {
    return this.#generation;
  }

  versions() {
    return [...this.#entries.values()]
      .map(({ service: { spec }, availability, resources, openApiHash, swagger }) => ({
        group: spec.group ?? '',
        version: spec.version ?? '',
        groupPriority: spec.groupPriorityMinimum,
        versionPriority: spec.versionPriority,
        resources,
        stale: !availability.available,
        openApiHash,
        swagger,
      }))
      .sort(
        (a, b) =>
          b.groupPriority - a.groupPriority ||
          (a.group < b.group ? -1 : a.group > b.group ? 1 : b.versionPriority - a.versionPriority),
      );
  }

  /** The resources of the servers that are available. */
  resources(): readonly DiscoveredResource[] {
    return this.versions()
      .filter(({ stale }) => !stale)
      .flatMap(({ group, version, resources: list }) =>
        (list?.resources ?? [])
          .filter(({ name }) => !name.includes('/'))
          .map(({ name, kind, namespaced, verbs }) => ({
            ...{ group, version, kind, namespaced, verbs, resource: name },
            storage: { group, resource: name },
          })),
      );
  }

  /**
   * A client for the server of a resource, with the permissions of this server. The caller closes it.
   *
   * @throws StatusError 503 when no server serves the resource
   */
  async connect({ group, version }: GroupVersionResource): Promise<HttpApiClient> {
    const entry = this.#entries.get(`${group}/${version}`);
    if (entry === undefined) throw statusErrors.serviceUnavailable(`no server serves ${group}/${version}`);
    const { host, port, tls } = await this.#upstream(entry);
    const { ca, cert, key, servername } = tls;
    return createHttpClient({
      server: `https://${authorityOf(host, port)}`,
      tlsServerName: servername,
      ...(ca === undefined ? { insecureSkipTlsVerify: true } : { ca }),
      ...(cert === undefined || key === undefined ? {} : { clientCertificate: cert, clientKey: key }),
      headers: ownHeaders,
      clock: this.#options.clock,
    });
  }

  find(group: string, version: string) {
    const entry = this.#entries.get(`${group}/${version}`);
    return (
      entry && {
        label: `the server of APIService ${JSON.stringify(keyOf(entry.service))}`,
        available: entry.availability.available,
        upstream: () => this.#upstream(entry),
        failed: () => {
          if (entry.checking) return;
          entry.cancel();
          void this.#check(entry);
        },
      }
    );
  }

  /** The address and the credentials for one request to an aggregated server. */
  async #upstream({ service: { spec } }: Entry) {
    const { namespace = '', name = '', port = 443 } = spec.service ?? {};
    const { host, port: target } = await this.#resolve(namespace, name, port);
    const identity = this.#options.identity();
    const authorities = spec.caBundle ? Buffer.from(spec.caBundle, 'base64').toString() : rootCertificates.join('\n');
    return {
      host,
      port: target,
      tls: {
        servername: `${name}.${namespace}.svc`,
        ...(identity ? { cert: identity.certificate, key: identity.key } : {}),
        ...(spec.insecureSkipTLSVerify ? {} : { ca: authorities }),
      },
    };
  }

  #put(service: APIService): void {
    const id = `${service.spec.group ?? ''}/${service.spec.version ?? ''}`;
    const before = this.#entries.get(id);
    if (before !== undefined && JSON.stringify(before.service.spec) === JSON.stringify(service.spec)) return;
    this.#remove(service);
    if (service.spec.service === undefined) return;
    const entry = new Entry(service);
    this.#entries.set(id, entry);
    this.active = true;
    this.#generation += 1;
    void this.#check(entry);
  }

  #remove({ spec }: APIService): void {
    const id = `${spec.group ?? ''}/${spec.version ?? ''}`;
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    stopEntry(entry);
    this.#entries.delete(id);
    this.#unavailable.set(0, { name: keyOf(entry.service) });
    this.active = this.#entries.size > 0;
    this.#generation += 1;
  }

  /** Checks a server immediately, and then at intervals. */
  async #check(entry: Entry): Promise<void> {
    entry.checking = true;
    const availability = await this.#examine(entry).catch((error: unknown) => unavailable(entry, error));
    entry.checking = false;
    if (entry.stopped) return;
    entry.cancel();
    const changed = availability.available !== entry.availability.available;
    entry.availability = availability;
    if (changed) this.#generation += 1;
    const name = keyOf(entry.service);
    this.#unavailable.set(availability.available ? 0 : 1, { name });
    if (changed && !availability.available) this.#failures.add(1, { name, reason: availability.reason });
    await this.#report(entry).catch((err: unknown) => {
      this.#options.logger.warn('the condition of an APIService was not written', { err, name: keyOf(entry.service) });
    });
    if (entry.stopped) return;
    const waitMs = availability.available ? healthyMs : failingMs;
    entry.cancel = this.#options.clock.after(waitMs, () => void this.#check(entry));
  }

  async #examine(entry: Entry): Promise<Availability> {
    const upstream = await this.#upstream(entry);
    const { tls, host, port } = upstream;
    const authority = authorityOf(host, port);
    const get = (path: string) =>
      requestJson({
        url: `https://${authority}${path}`,
        headers: ownHeaders,
        tls: { ...tls, ...('ca' in tls ? {} : { rejectUnauthorized: false }) },
        timeoutMs: checkTimeoutMs,
        answerBytes: documentBytes,
        clock: this.#options.clock,
      });
    const resources = await get(entry.path).catch((error: Error) => {
      const text = printableText(error.message);
      throw new CheckError(`failing or missing response from https://${authority}${entry.path}: ${text}`);
    });
    if (!isResourceList(resources)) {
      throw new CheckError(
        `failing or missing response from https://${authority}${entry.path}: the answer is not an APIResourceList`,
      );
    }
    const index = await get('/openapi/v3').catch(() => undefined);
    const openApiHash = hashIn(index, entry.path.slice(1));
    const known = entry.swagger !== undefined && openApiHash !== undefined && openApiHash === entry.openApiHash;
    const swagger = known
      ? entry.swagger
      : await get('/openapi/v2')
          .then(partFor(entry))
          .catch(() => undefined);
    const before = [entry.resources, entry.openApiHash, entry.swagger];
    if (!isDeepStrictEqual([resources, openApiHash, swagger], before)) {
      entry.resources = resources;
      entry.openApiHash = openApiHash;
      entry.swagger = swagger;
      this.#generation += 1;
    }
    return { available: true, reason: 'Passed', message: 'all checks passed' };
  }

  /** Writes the condition when it differs from the stored one. */
  async #report(entry: Entry): Promise<void> {
    const { clock, client } = this.#options;
    const { available, reason, message } = entry.availability;
    const services = client.resource(APIService);
    const name = keyOf(entry.service);
    const stored = await services.get(name, { resourceVersion: '0' });
    const conditions = stored.status?.conditions ?? [];
    const before = conditions.find(({ type }) => type === 'Available');
    const status = available ? 'True' : 'False';
    if (before?.status === status && before.reason === reason && before.message === message) return;
    const now = `${new Date(clock.now()).toISOString().slice(0, 19)}Z`;
    const lastTransitionTime = before?.status === status ? (before.lastTransitionTime ?? now) : now;
    const condition = { type: 'Available', status, lastTransitionTime, reason, message };
    const others = conditions.filter(({ type }) => type !== 'Available');
    await services.patchSubresource(name, 'status', 'merge', { status: { conditions: [...others, condition] } });
  }
}

class CheckError extends Error {}

const authorityOf = (host: string, port: number): string => `${host.includes(':') ? `[${host}]` : host}:${port}`;

function stopEntry(entry: Entry): void {
  entry.stopped = true;
  entry.cancel();
}

/** Reasons and messages are those of kube-aggregator. */
function unavailable({ service: { spec } }: Entry, error: unknown): Availability {
  const { namespace = '', name = '', port = 443 } = spec.service ?? {};
  const at = `service/${name} in ${JSON.stringify(namespace)}`;
  const text = printableText((error as Error).message);
  if (error instanceof CheckError) return { available: false, reason: 'FailedDiscoveryCheck', message: error.message };
  if (!isStatusError(error)) return { available: false, reason: 'FailedDiscoveryCheck', message: text };
  if (error.code === 404) return { available: false, reason: 'ServiceNotFound', message: `${at} is not present` };
  if (text.startsWith('no service port'))
    return { available: false, reason: 'ServicePortError', message: `${at} is not listening on port ${port}` };
  if (text.startsWith('no endpoints')) {
    const message = `endpointslices for ${at} have no addresses`;
    return { available: false, reason: 'MissingEndpoints', message };
  }
  return { available: false, reason: 'ServiceAccessError', message: `${at} cannot be accessed due to: ${text}` };
}

function isResourceList(value: unknown): value is APIResourceList {
  return isJsonObject(value) && value['kind'] === 'APIResourceList' && Array.isArray(value['resources']);
}

/** Returns a function that extracts the group and version of an APIService from a Swagger document. */
function partFor({ service: { spec } }: Entry): (document: unknown) => SwaggerPart | undefined {
  return (document) => swaggerPart(document, { group: spec.group ?? '', version: spec.version ?? '' });
}

/** The hash of a document in an index of OpenAPI documents. */
function hashIn(index: unknown, path: string): string | undefined {
  const paths = isJsonObject(index) ? index['paths'] : undefined;
  const entry = isJsonObject(paths) ? paths[path] : undefined;
  const url = isJsonObject(entry) ? entry['serverRelativeURL'] : undefined;
  if (typeof url !== 'string' || !URL.canParse(url, 'https://server')) return undefined;
  return new URL(url, 'https://server').searchParams.get('hash') ?? undefined;
}
