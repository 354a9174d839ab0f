import { arch, platform, versions } from 'node:process';
import { StatusError, StatusReason } from '@keelson/core';
import type { Metrics } from '@keelson/core/runtime';
import type { Exchange } from '../exchange/exchange.ts';
import { type FlatHeaders, sendBytes } from '../exchange/exchange.ts';
import type { HttpLevels, HttpMetrics } from '../exchange/metrics.ts';
import type { HttpApiOptions, VersionInfo } from '../exchange/options.ts';
import { sendText } from '../exchange/send.ts';
import { type ApiDocuments, issuerPaths } from './api-documents.ts';
import type { Health, HealthEndpoint } from './health.ts';

export interface EndpointOptions {
  readonly documents: ApiDocuments;
  readonly health: Health;
  /** Body of `/version`. */
  readonly version: Buffer;
  readonly metrics: Metrics;
  readonly httpMetrics: HttpMetrics;
  readonly levels: () => HttpLevels;
  readonly issuerDocuments: HttpApiOptions['issuerDocuments'];
}

/** Answers a GET of a path. */
type Endpoint = (exchange: Exchange, parameters: readonly string[]) => Promise<void> | void;

/** What answers the requests of a path, with the parameters of the path; undefined when there is no endpoint. */
export type EndpointRouter = (path: string) => ((exchange: Exchange) => Promise<void> | void) | undefined;

/** `:` is one segment of the path, `*` the rest of it. A trailing slash is ignored. */
function patternOf(template: string): RegExp {
  return new RegExp(`^${template.replaceAll('.', '\\.').replaceAll(':', '([^/]+)').replaceAll('*', '(.+?)')}/?$`);
}

/** Parameters that are not valid percent-encoding are compared as they are. */
function decoded(parameter: string): string {
  try {
    return decodeURIComponent(parameter);
  } catch {
    return parameter;
  }
}

/** The answer to methods other than GET, HEAD and OPTIONS on the path of an endpoint. */
function methodNotAllowed(): StatusError {
  return new StatusError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'the server does not allow this method on the requested resource',
    reason: StatusReason.MethodNotAllowed,
    details: {},
    code: 405,
  });
}

/** Relying parties may cache the public keys of tokens for an hour, as with kube-apiserver. */
const cachedForAnHour = 'public, max-age=3600';

const nosniff: FlatHeaders = ['X-Content-Type-Options', 'nosniff'];

/**
 * The endpoints that are not resources: see docs/reference/api-rules.md#discovery, docs/reference/api-rules.md#openapi
 * and docs/reference/api-rules.md#health-and-version.
 */
export function createEndpointRouter(options: EndpointOptions): EndpointRouter {
  const endpoints: { readonly pattern: RegExp; readonly endpoint: Endpoint }[] = [];
  const get = (template: string, endpoint: Endpoint) => {
    endpoints.push({ pattern: patternOf(template), endpoint });
  };

  for (const name of ['healthz', 'livez', 'readyz'] satisfies HealthEndpoint[]) {
    get(`/${name}`, async (exchange) => {
      const { code, text } = await options.health.all(name, exchange.attributes.query);
      sendText(exchange, code, text);
    });
    get(`/${name}/:`, async (exchange, [check = '']) => {
      const { code, text } = await options.health.one(name, check);
      sendText(exchange, code, text);
    });
  }
  get('/version', (exchange) => sendBytes(exchange, 200, 'application/json', options.version));
  get('/metrics', async (exchange) => {
    options.httpMetrics.flush(options.levels());
    const text = await options.metrics.text();
    sendBytes(exchange, 200, 'text/plain; version=0.0.4; charset=utf-8', Buffer.from(text), nosniff);
  });

  const { documents, issuerDocuments: issuer } = options;
  if (issuer !== undefined) {
    const send = (exchange: Exchange, mediaType: string, text: string) => {
      exchange.cacheControl = cachedForAnHour;
      sendBytes(exchange, 200, mediaType, Buffer.from(text));
    };
    const [configurationPath, keysPath] = issuerPaths;
    get(configurationPath, (exchange) => send(exchange, 'application/json', issuer().configuration));
    get(keysPath, (exchange) => send(exchange, 'application/jwk-set+json', issuer().keys));
  }

  get('/', (exchange) => documents.index(exchange));
  get('/index.html', (exchange) => documents.index(exchange));
  get('/api', (exchange) => documents.coreVersions(exchange));
  get('/apis', (exchange) => documents.groups(exchange));
  get('/apis/:', (exchange, [group = '']) => documents.group(exchange, group));
  get('/api/:', (exchange, [version = '']) => documents.resources(exchange, { group: '', version }));
  get('/apis/:/:', (exchange, [group = '', version = '']) => documents.resources(exchange, { group, version }));
  get('/openapi/v2', (exchange) => documents.swagger(exchange));
  get('/swagger.json', (exchange) => documents.swaggerAs(exchange, 'json'));
  get('/swagger-2.0.0.pb-v1', (exchange) => documents.swaggerAs(exchange, 'protobuf'));
  get('/openapi/v3', (exchange) => documents.openApiIndex(exchange));
  get('/openapi/v3/*', (exchange, [path = '']) => documents.openApiDocument(exchange, path));

  return (path) => {
    for (const { pattern, endpoint } of endpoints) {
      const found = pattern.exec(path);
      if (found === null) continue;
      return (exchange) => {
        const { method } = exchange.request;
        if (method === 'GET' || method === 'HEAD') return endpoint(exchange, found.slice(1).map(decoded));
        if (method !== 'OPTIONS') throw methodNotAllowed();
        return sendText(exchange, 200, '', ['Allow', 'HEAD, GET']);
      };
    }
    return undefined;
  };
}

const architectures: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

/** The body of `/version`: see docs/reference/api-rules.md#health-and-version. */
export function versionDocument(version: VersionInfo): Buffer {
  const document = {
    major: version.major,
    minor: version.minor,
    gitVersion: version.gitVersion,
    gitCommit: version.gitCommit ?? '',
    gitTreeState: version.gitTreeState ?? 'clean',
    buildDate: version.buildDate ?? '1970-01-01T00:00:00Z',
    goVersion: `node${versions.node}`,
    compiler: 'v8',
    platform: `${platform}/${architectures[arch] ?? arch}`,
  };
  return Buffer.from(JSON.stringify(document, null, 2));
}
