import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { maxManifestBytes } from './parse-manifest.ts';

export interface FetchOptions {
  readonly url: string;
  /** Sent in this order; names may repeat. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Headers that every request has, unless they are given. */
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
 * Gets a document. Redirects are not followed: the headers may be credentials, meant for this server alone.
 *
 * @throws Error for answers other than 200, documents that are too large, and what the network does
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
          answer.complete ? resolve(Buffer.concat(chunks)) : reject(new Error('the answer broke off')),
        );
      },
    );
    outgoing.on('error', reject);
    outgoing.end();
  });
}
