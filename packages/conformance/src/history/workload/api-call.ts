import { type Agent, type IncomingMessage, request } from 'node:http';

/** A response, or the reason why there is none. `sent` is false when the server cannot have received the request. */
export type Answer =
  | { readonly answered: true; readonly status: number; readonly body: Readonly<Record<string, unknown>> }
  | { readonly answered: false; readonly sent: boolean; readonly why: string };

export interface ApiRequest {
  readonly agent: Agent;
  readonly server: string;
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly contentType?: string;
  /** Time limit of the whole call, in milliseconds. */
  readonly timeoutMs: number;
}

/** Makes one JSON request. Never throws: a broken connection is a result too. */
export function callApi({ agent, server, method, path, body, contentType, timeoutMs }: ApiRequest): Promise<Answer> {
  return new Promise((resolve) => {
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const headers = bytes ? { 'content-type': contentType ?? 'application/json', 'content-length': bytes.length } : {};
    const sending = request(new URL(path, server), { agent, method, headers });
    const timer = setTimeout(() => sending.destroy(new Error('timeout')), timeoutMs);
    const end = (answer: Answer) => {
      clearTimeout(timer);
      resolve(answer);
    };
    sending.on('error', (error: NodeJS.ErrnoException) => {
      end({ answered: false, sent: error.code !== 'ECONNREFUSED', why: error.code ?? error.message });
    });
    sending.on('response', (response) => {
      readAll(response).then(
        (text) =>
          end({ answered: true, status: response.statusCode ?? 0, body: JSON.parse(text) as Record<string, unknown> }),
        (error: Error) => end({ answered: false, sent: true, why: error.message }),
      );
    });
    sending.end(bytes);
  });
}

async function readAll(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
