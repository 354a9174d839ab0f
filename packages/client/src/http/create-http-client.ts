import type { ApiClient, KubeObject } from '@keelson/core';
import { discover } from './discover.ts';
import type { HttpClientOptions } from './http-client-options.ts';
import { HttpResourceClient } from './http-resource-client.ts';
import { HttpTransport } from './http-transport.ts';

/** An {@link ApiClient} with connections of its own. */
export interface HttpApiClient extends ApiClient {
  /** Ends requests and watches that are under way, and every connection. Idempotent. */
  close(): void;
}

/**
 * The API of a server over HTTP or HTTPS. What the server refuses is a `StatusError`, exactly as in process; what never got an answer is a
 * `ConnectionError`, whose code tells whether the server may have acted.
 *
 * @throws Error when the options contradict themselves; nothing is sent before the first call
 */
export function createHttpClient(options: HttpClientOptions): HttpApiClient {
  const transport = new HttpTransport(options);
  return {
    resource: (kind) =>
      new HttpResourceClient(transport, {
        resource: { group: kind.group, version: kind.version, resource: kind.names.plural },
        kind: kind.kind,
      }),
    dynamic: (resource, { metadataOnly = false } = {}) =>
      new HttpResourceClient<KubeObject>(transport, { resource, metadataOnly }),
    discover: () => discover(transport),
    close: () => transport.close(),
  };
}
