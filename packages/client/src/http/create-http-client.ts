import { type ApiClient, defaultBrand, type KindDefinition, type KubeObject } from '@keelson/core';
import { discover } from './discover.ts';
import type { HttpClientOptions } from './http-client-options.ts';
import { HttpResourceClient } from './http-resource-client.ts';
import { HttpTransport } from './http-transport.ts';
import { protobufFormat } from './protobuf-format.ts';
import { jsonFormat, type WireFormat } from './wire-format.ts';

/** An {@link ApiClient} with connections of its own. */
export interface HttpApiClient extends ApiClient {
  /** Ends requests and watches that are under way, and every connection. Idempotent. */
  close(): void;
  /**
   * Hands over to another client: ends watches, lets requests that are under way finish, then ends every connection.
   */
  retire(): void;
}

/**
 * The API of a server over HTTP or HTTPS. What the server refuses is a `StatusError`, exactly as in process; what never
 * got an answer is a `ConnectionError`, whose code tells whether the server may have acted.
 *
 * @throws Error when the options contradict themselves; nothing is sent before the first call
 */
export function createHttpClient(options: HttpClientOptions): HttpApiClient {
  const transport = new HttpTransport(options);
  const { encoding = 'json', brand = defaultBrand } = options;
  const formats = new WeakMap<KindDefinition, WireFormat>();
  const formatOf = (kind: KindDefinition): WireFormat => {
    if (encoding === 'json' || !kind.protobuf) return jsonFormat;
    let format = formats.get(kind);
    if (format === undefined) {
      format = protobufFormat(kind, brand);
      formats.set(kind, format);
    }
    return format;
  };
  return {
    resource: (kind) =>
      new HttpResourceClient(transport, {
        resource: { group: kind.group, version: kind.version, resource: kind.names.plural },
        kind: kind.kind,
        format: formatOf(kind),
        brand,
      }),
    dynamic: (resource, { metadataOnly = false } = {}) =>
      new HttpResourceClient<KubeObject>(transport, {
        resource,
        metadataOnly: metadataOnly !== false,
        format: jsonFormat,
        brand,
      }),
    discover: () => discover(transport),
    close: () => transport.close(),
    retire: () => transport.retire(),
  };
}
