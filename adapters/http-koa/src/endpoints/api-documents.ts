import { type GroupVersion, statusErrors } from '@keelson/core';
import {
  type AggregatedDiscoveryVersion,
  type APIGroup,
  aggregatedDiscoveryMediaType,
  apiGroup,
  apiGroupDiscoveryList,
  apiGroupList,
  apiResourceList,
  apiVersions,
  type Brand,
  jsonMediaType,
  mediaTypesOf,
  negotiate,
  type Offer,
  OpenApiDocuments,
  type OpenApiFile,
  type OpenApiV3Index,
  protobufMediaType,
  type ResourceRegistry,
  type SwaggerForm,
} from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import type { AggregatedApis, AggregatedServer, AggregatedVersion } from '../exchange/aggregated-apis.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { sendBytes } from '../exchange/exchange.ts';
import { sendNoSuchResource, sendNotFound } from '../exchange/send.ts';
import { withAggregatedDiscovery, withAggregatedGroups } from './aggregated-documents.ts';
import { type DocumentFile, documentFile, sendApiDocument, sendDocument, sendFile } from './document.ts';

const swaggerProtobuf = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

/**
 * kubectl requests a name with an at sign, which is not valid in a media type; it cannot read a response that repeats
 * it.
 */
const swaggerOffers: readonly (Offer & { readonly form: SwaggerForm; readonly contentType: string })[] = [
  { mediaType: jsonMediaType, form: 'json', contentType: jsonMediaType },
  { mediaType: swaggerProtobuf, form: 'protobuf', contentType: swaggerProtobuf },
  {
    mediaType: 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf',
    form: 'protobuf',
    contentType: swaggerProtobuf,
  },
];

/** The plain and the aggregated form of discovery; the Accept header decides between them. */
function discoveryOffers(brand: Brand): readonly Offer[] {
  return [
    {
      mediaType: jsonMediaType,
      targets: [
        { group: 'apidiscovery.k8s.io', version: 'v2', kind: 'APIGroupDiscoveryList' },
        { group: 'apidiscovery.k8s.io', version: 'v2beta1', kind: 'APIGroupDiscoveryList' },
      ],
    },
    { mediaType: 'application/yaml' },
    { mediaType: protobufMediaType(brand) },
  ];
}

const fixedPaths = [
  '/healthz',
  '/healthz/ping',
  '/livez',
  '/livez/ping',
  '/metrics',
  '/openapi/v2',
  '/openapi/v3',
  '/readyz',
  '/readyz/ping',
  '/swagger-2.0.0.pb-v1',
  '/swagger.json',
  '/version',
];

/** Paths of the documents by which other services verify the tokens of service accounts. */
export const issuerPaths = ['/.well-known/openid-configuration', '/openid/v1/jwks'] as const;

const aYearMs = 365 * 24 * 3600 * 1000;

export interface ApiDocumentsOptions {
  readonly registry: ResourceRegistry;
  readonly clock: Clock;
  /** `host:port`; default: the Host header of the request. */
  readonly serverAddress: string | undefined;
  readonly version: string;
  readonly gzipBytes: number;
  readonly brand: Brand;
  /** Paths in the index document `/` in addition to those that every server has. */
  readonly morePaths: readonly string[];
  /** Path below which the server is mounted; '' at the root. */
  readonly prefix: string;
  /** API groups of other servers. */
  readonly aggregated: AggregatedApis | undefined;
  readonly forward: (exchange: Exchange, server: AggregatedServer) => Promise<void>;
}

/**
 * The documents that describe the served API: index, discovery, OpenAPI. They are created again when the kinds change.
 * See docs/reference/api-rules.md#discovery and docs/reference/api-rules.md#openapi.
 */
export class ApiDocuments {
  readonly #options: ApiDocumentsOptions;
  readonly #cache = new Map<string, DocumentFile>();
  readonly #openApi: OpenApiDocuments;
  #generation = '';

  constructor(options: ApiDocumentsOptions) {
    this.#options = options;
    this.#openApi = new OpenApiDocuments(
      options.registry,
      { title: 'Keelson', version: options.version },
      options.brand,
      options.prefix,
    );
  }

  /** `/`: all paths, sorted. */
  index(exchange: Exchange): void {
    const paths = new Set([...fixedPaths, ...this.#options.morePaths]);
    for (const { group, version } of this.#options.registry.kinds()) {
      const roots =
        group === '' ? ['/api', `/api/${version}`] : ['/apis', `/apis/${group}`, `/apis/${group}/${version}`];
      for (const path of roots) paths.add(path);
    }
    for (const { group, version } of this.#aggregatedVersions())
      paths.add(`/apis/${group}`).add(`/apis/${group}/${version}`);
    sendDocument(exchange, { paths: [...paths].sort() });
  }

  /** `/api`. */
  coreVersions(exchange: Exchange): Promise<void> | void {
    const aggregated = this.#aggregatedVersion(exchange);
    if (aggregated !== undefined) return this.#sendAggregated(exchange, 'core', aggregated);
    this.#send(exchange, apiVersions(this.#options.registry.kinds(), this.#address(exchange)));
  }

  /** `/apis`. */
  groups(exchange: Exchange): Promise<void> | void {
    const aggregated = this.#aggregatedVersion(exchange);
    if (aggregated !== undefined) return this.#sendAggregated(exchange, 'groups', aggregated);
    const own = apiGroupList(this.#options.registry.kinds(), this.#address(exchange));
    this.#send(exchange, { ...own, groups: this.#groups(own.groups, exchange) });
  }

  /** `/apis/{group}`. */
  group(exchange: Exchange, name: string): void {
    const own = apiGroup(this.#options.registry.kinds(), name, this.#address(exchange));
    const found = this.#groups(own ? [own] : [], exchange).find((group) => group.name === name);
    if (found === undefined) sendNotFound(exchange);
    else this.#send(exchange, { kind: 'APIGroup', apiVersion: 'v1', ...found });
  }

  #aggregatedVersions(): readonly AggregatedVersion[] {
    return this.#options.aggregated?.versions() ?? [];
  }

  #groups(own: readonly APIGroup[], exchange: Exchange): readonly APIGroup[] {
    const versions = this.#aggregatedVersions();
    return versions.length === 0 ? own : withAggregatedGroups(own, versions, this.#address(exchange));
  }

  /** `/api/{version}` and `/apis/{group}/{version}`. */
  resources(exchange: Exchange, groupVersion: GroupVersion): Promise<void> | void {
    const server = this.#options.aggregated?.find(groupVersion.group, groupVersion.version);
    if (server !== undefined) return this.#options.forward(exchange, server);
    const kinds = this.#options.registry.kinds();
    const document = apiResourceList(kinds, groupVersion);
    if (document === undefined) sendNoSuchResource(exchange, groupVersion.group, kinds);
    else this.#send(exchange, document);
  }

  /** `/openapi/v2`. */
  swagger(exchange: Exchange): Promise<void> | void {
    const chosen = negotiate(exchange.request.headers.accept, swaggerOffers)?.offer;
    if (chosen === undefined) throw statusErrors.notAcceptable(mediaTypesOf(swaggerOffers));
    const headers = ['Cache-Control', 'no-cache, private', 'Vary', 'Accept'];
    return sendFile(exchange, chosen.contentType, this.#swagger(chosen.form), headers, this.#options.gzipBytes);
  }

  /**
   * `/swagger.json` and `/swagger-2.0.0.pb-v1`: the predecessors of `/openapi/v2` up to 1.9, with the format in the
   * path.
   */
  swaggerAs(exchange: Exchange, form: SwaggerForm): Promise<void> | void {
    const contentType = form === 'json' ? jsonMediaType : swaggerProtobuf;
    const headers = ['Cache-Control', 'no-cache, private'];
    return sendFile(exchange, contentType, this.#swagger(form), headers, this.#options.gzipBytes);
  }

  #swagger(form: SwaggerForm): OpenApiFile {
    const parts = this.#aggregatedVersions().flatMap(({ swagger }) => (swagger ? [swagger] : []));
    return this.#openApi.swagger(form, parts);
  }

  /** `/openapi/v3`. */
  openApiIndex(exchange: Exchange): Promise<void> | void {
    return sendFile(
      exchange,
      jsonMediaType,
      this.#openApiIndex(),
      ['Cache-Control', 'no-cache, private'],
      this.#options.gzipBytes,
    );
  }

  /**
   * `/openapi/v3/{path}`: with the current `hash` the document may be cached for a year; with another one the client is
   * redirected.
   */
  openApiDocument(exchange: Exchange, path: string): Promise<void> | void {
    const [root, group = '', version = ''] = path.split('/');
    const server = root === 'apis' ? this.#options.aggregated?.find(group, version) : undefined;
    if (server !== undefined) return this.#options.forward(exchange, server);
    const file = this.#openApi.document(path);
    if (file === undefined) return sendNotFound(exchange);
    const hash = exchange.attributes.query.first('hash');
    if (hash !== undefined && hash !== file.hash) {
      const location = `${this.#options.prefix}/openapi/v3/${path}?hash=${file.hash}`;
      return sendBytes(exchange, 301, 'text/plain', Buffer.from(`moved to ${location}\n`), ['Location', location]);
    }
    const caching =
      hash === undefined
        ? ['Cache-Control', 'no-cache, private']
        : [
            'Cache-Control',
            'public, immutable',
            'Expires',
            new Date(this.#options.clock.now() + aYearMs).toUTCString(),
          ];
    return sendFile(exchange, jsonMediaType, file, [...caching, 'Vary', 'Accept'], this.#options.gzipBytes);
  }

  /** The index of this server's documents, with those of other servers. */
  #openApiIndex(): DocumentFile {
    const own = this.#openApi.index();
    const known = this.#aggregatedVersions().filter(({ openApiHash }) => openApiHash !== undefined);
    if (known.length === 0) return own;
    return this.#cached(`openapi ${own.hash}`, () => {
      const index = JSON.parse(own.bytes.toString()) as OpenApiV3Index;
      const added = known.map(({ group, version, openApiHash }) => {
        const path = `apis/${group}/${version}`;
        const serverRelativeURL = `${this.#options.prefix}/openapi/v3/${path}?hash=${encodeURIComponent(openApiHash ?? '')}`;
        return [path, { serverRelativeURL }];
      });
      return { ...index, paths: { ...index.paths, ...Object.fromEntries(added) } };
    });
  }

  /** Version of the aggregated form of discovery that a client requests; undefined when it prefers the plain form. */
  #aggregatedVersion(exchange: Exchange): AggregatedDiscoveryVersion | undefined {
    return negotiate(exchange.request.headers.accept, discoveryOffers(this.#options.brand))?.target?.version as
      | AggregatedDiscoveryVersion
      | undefined;
  }

  #send(exchange: Exchange, document: object): void {
    sendApiDocument(exchange, document, this.#options.brand);
  }

  #sendAggregated(
    exchange: Exchange,
    part: 'core' | 'groups',
    version: AggregatedDiscoveryVersion,
  ): Promise<void> | void {
    const file = this.#cached(`${part} ${version}`, () => {
      const list = apiGroupDiscoveryList(this.#options.registry.kinds(), part, version);
      if (part === 'core') return list;
      return { ...list, items: withAggregatedDiscovery(list.items, this.#aggregatedVersions()) };
    });
    const headers = ['Vary', 'Accept', 'Cache-Control', 'public'];
    return sendFile(exchange, aggregatedDiscoveryMediaType(version), file, headers, this.#options.gzipBytes);
  }

  #cached(key: string, make: () => object): DocumentFile {
    const { registry, aggregated } = this.#options;
    const generation = `${registry.generation} ${aggregated?.generation ?? 0}`;
    if (generation !== this.#generation) {
      this.#cache.clear();
      this.#generation = generation;
    }
    let file = this.#cache.get(key);
    if (file === undefined) {
      file = documentFile(make());
      this.#cache.set(key, file);
    }
    return file;
  }

  #address(exchange: Exchange): string {
    if (this.#options.serverAddress !== undefined) return this.#options.serverAddress;
    const host = exchange.request.headers.host ?? '';
    return /^[\w.:[\]-]{1,255}$/.test(host) ? host : '';
  }
}
