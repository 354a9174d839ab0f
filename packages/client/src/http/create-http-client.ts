import type { ApiClient, KindDefinition, KubeObject } from '@keelson/core';
import { defaultBrand } from '@keelson/core/internal';
import { discover } from './discover.ts';
import type { HttpClientOptions } from './http-client-options.ts';
import { HttpResourceClient } from './http-resource-client.ts';
import { HttpTransport } from './http-transport.ts';
import { protobufFormat } from './protobuf-format.ts';
import { jsonFormat, type WireFormat } from './wire-format.ts';

/** An {@link ApiClient} with its own connections. */
export interface HttpApiClient extends ApiClient {
  /** Aborts running requests and watches and closes every connection. Idempotent. */
  close(): void;
  /**
   * Prepares the replacement by another client: ends watches, waits for running requests, then closes every connection.
   */
  retire(): void;
}

/**
 * A client for the API of a server over HTTP or HTTPS. Errors of the server are `StatusError`s, as for the in-process
 * client. A request without a response fails with a `ConnectionError`, whose code states whether the server may have
 * acted.
 *
 * @throws Error for contradictory options; nothing is sent before the first call
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
