import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';

/** A response with its complete body. */
export interface PlainReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface PlainRequest {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** The HTTP client of Node, without validation of requests. */
export class PlainHttp {
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 });

  constructor(url: string) {
    this.#url = url;
  }

  /** Returns the response while its body is still received. */
  open(method: string, path: string, { headers = {}, body }: PlainRequest = {}): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
      const req = request(
        `${this.#url}${path}`,
        { method, agent: this.#agent, headers: { ...length, ...headers } },
        resolve,
      );
      req.once('error', reject);
      req.end(body);
    });
  }

  async send(method: string, path: string, options?: PlainRequest): Promise<PlainReply> {
    const response = await this.open(method, path, options);
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) };
  }

  close(): void {
    this.#agent.destroy();
  }
}
