import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { maxManifestBytes } from './parse-manifest.ts';

export interface FetchOptions {
  readonly url: string;
  /** Sent in this order; names may be repeated. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** The headers of a request: the given ones, and defaults for missing ones. */
function rawHeaders(url: URL, given: FetchOptions['headers']): string[] {
  const names = new Set(given.map(([name]) => name.toLowerCase()));
  const own = [
    ['Host', url.host],
    ['User-Agent', 'keelson-agent'],
    ['Accept', 'application/yaml, application/json, */*'],
    ['Connection', 'close'],
  ].filter(([name = '']) => !names.has(name.toLowerCase()));
  return [...own, ...given].flat();
}

/**
 * Fetches a document. Redirects are not followed: the headers may contain credentials for this server.
 *
 * @throws Error for answers other than 200, for documents that are too large, and for network errors
 */
export function fetchManifests({ url: text, headers, timeoutMs, signal }: FetchOptions): Promise<Buffer> {
  const url = new URL(text);
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      {
        headers: rawHeaders(url, headers),
        agent: false,
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      },
      (answer) => {
        if (answer.statusCode !== 200) {
          answer.destroy();
          reject(new Error(`the server answered ${answer.statusCode}, not 200`));
          return;
        }
        const chunks: Buffer[] = [];
        let size = 0;
        answer.on('data', (chunk: Buffer) => {
          chunks.push(chunk);
          size += chunk.length;
          if (size > maxManifestBytes)
            answer.destroy(new Error(`the document has more than ${maxManifestBytes} bytes`));
        });
        answer.on('error', reject);
        answer.on('end', () =>
          answer.complete
            ? resolve(Buffer.concat(chunks))
            : reject(new Error('the answer ended before it was complete')),
        );
      },
    );
    outgoing.on('error', reject);
    outgoing.end();
  });
}
