import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { RegistryAccess } from './registry-access.ts';
import type { RegistryBehaviour, RegistryRequest } from './registry-behaviour.ts';
import { writeBody } from './registry-body.ts';
import { type Blob, digestOf, type ImageFormat, makeImage, makeIndex, type RegistryImage } from './registry-images.ts';

export interface RegistryOptions extends RegistryBehaviour {
  /** Serves https with this certificate. */
  readonly tls?: { readonly key: string; readonly cert: string };
}

/** Properties of an image that a test may compare. */
export interface AddedImage {
  /** Digest of the configuration. */
  readonly id: string;
  /** Digest of the manifest. */
  readonly digest: string;
  /** Digests of the layers, the lowest first. */
  readonly layers: readonly string[];
}

/**
 * A registry of images on loopback, for tests: everything is in memory, clients can only pull, and faults can be
 * injected. Real engines pull from it.
 */
export class LoopbackRegistry implements AsyncDisposable {
  /** `127.0.0.1:PORT`, the first part of references. */
  readonly host: string;
  /** Every request so far, the oldest first. */
  readonly requests: RegistryRequest[] = [];
  /** Number of blobs that are being sent, and its maximum so far. */
  readonly bodies = { open: 0, most: 0 };
  readonly #scheme: string;
  readonly #servers: readonly Server[];
  readonly #access = new RegistryAccess();
  readonly #blobs = new Map<string, Blob>();
  /** By `REPOSITORY:TAG` and `REPOSITORY@DIGEST`. */
  readonly #manifests = new Map<string, Blob>();
  readonly #signals = new EventEmitter().setMaxListeners(0);
  #behaviour: RegistryBehaviour;

  private constructor(options: RegistryOptions, servers: readonly Server[]) {
    this.#behaviour = options;
    this.#scheme = options.tls === undefined ? 'http' : 'https';
    this.#servers = servers;
    this.host = this.#hostOf(0);
    for (const [position, server] of servers.entries()) {
      server.on('request', (request: IncomingMessage, response: ServerResponse) => {
        this.#answer(request, response, position > 0).catch(() => response.destroy());
      });
    }
  }

  static async open(options: RegistryOptions = {}): Promise<LoopbackRegistry> {
    const create = (): Server => (options.tls === undefined ? createServer() : createTlsServer(options.tls));
    const servers = [create(), create()];
    for (const server of servers) await once(server.listen(0, '127.0.0.1'), 'listening');
    return new LoopbackRegistry(options, servers);
  }

  /** Changes the given properties; answers that are in progress continue with the new behaviour. */
  behave(change: RegistryBehaviour): void {
    this.#behaviour = { ...this.#behaviour, ...change };
    this.#signals.emit('changed');
  }

  /** Puts an image under `REPOSITORY:TAG`, in place of the one that is there. */
  add(name: string, image: RegistryImage): AddedImage {
    const made = this.#keep(name, image);
    this.#publish(name, made.manifest);
    return {
      id: made.id,
      digest: digestOf(made.manifest.bytes),
      layers: made.blobs.slice(1).map(({ bytes }) => digestOf(bytes)),
    };
  }

  /** Puts an index of images, one per architecture, under `REPOSITORY:TAG`. Returns its digest. */
  addIndex(name: string, images: readonly RegistryImage[], format: ImageFormat = 'oci'): string {
    const index = makeIndex(
      images.map((image) => this.#keep(name, { format, ...image })),
      format,
    );
    this.#publish(name, index);
    return digestOf(index.bytes);
  }

  /** Stores any document in the place of a manifest. */
  addManifest(name: string, mediaType: string, document: unknown): void {
    this.#publish(name, { mediaType, bytes: Buffer.from(JSON.stringify(document)) });
  }

  /** Number of requests so far whose path matches. */
  count(path: RegExp): number {
    return this.requests.filter((request) => path.test(request.path)).length;
  }

  /**
   * Resolves when there has been a request with such a path and, if it was for a blob, bytes of the blob have been
   * sent.
   */
  async seen(path: RegExp, times = 1): Promise<void> {
    while (this.count(path) < times) await once(this.#signals, 'request');
  }

  /** Makes all tokens invalid, as their expiry does. */
  expireTokens(): void {
    this.#access.forget();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#servers) {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    }
  }

  #hostOf(position: number): string {
    const address = this.#servers[position]?.address() as AddressInfo;
    return `127.0.0.1:${address.port}`;
  }

  #keep(name: string, image: RegistryImage): ReturnType<typeof makeImage> {
    const made = makeImage(image);
    for (const blob of made.blobs) this.#blobs.set(digestOf(blob.bytes), blob);
    this.#manifests.set(`${name.replace(/:[^:]*$/, '')}@${digestOf(made.manifest.bytes)}`, made.manifest);
    return made;
  }

  #publish(name: string, manifest: Blob): void {
    this.#manifests.set(name, manifest);
    this.#manifests.set(`${name.replace(/:[^:]*$/, '')}@${digestOf(manifest.bytes)}`, manifest);
  }

  async #answer(incoming: IncomingMessage, response: ServerResponse, storage: boolean): Promise<void> {
    const { method = 'GET', url: path = '/', headers } = incoming;
    const request: RegistryRequest = { method, path, authorization: headers.authorization, storage };
    this.requests.push(request);
    this.#signals.emit('request');
    const { auth, refuse, moved } = this.#behaviour;
    const refused = refuse?.(request);
    if (refused !== undefined) return fail(response, refused.status, refused.code);
    if (storage) return this.#sendBlob(response, method, path.slice(1));
    if (path.startsWith('/token')) return this.#sendToken(incoming, response);
    const challenge = auth && this.#access.challenge(auth, incoming, `${this.#scheme}://${this.host}`);
    if (challenge !== undefined) {
      response.setHeader('www-authenticate', challenge);
      return fail(response, 401, 'UNAUTHORIZED');
    }
    if (moved === undefined) return this.#sendNamed(response, method, path);
    response.writeHead(307, { location: moved + path }).end();
  }

  async #sendNamed(response: ServerResponse, method: string, path: string): Promise<void> {
    const [, repository, kind, name = ''] = /^\/v2\/(.+)\/(manifests|blobs)\/([^/?]+)/.exec(path) ?? [];
    if (/^\/v2\/?$/.test(path)) response.end('{}');
    else if (kind === 'manifests')
      this.#sendManifest(response, method, `${repository}${name.includes(':') ? '@' : ':'}${name}`);
    else if (kind !== 'blobs') fail(response, 404, 'NAME_UNKNOWN');
    else if (!this.#behaviour.redirect) await this.#sendBlob(response, method, name);
    else response.writeHead(307, { location: `${this.#scheme}://${this.#hostOf(1)}/${name}` }).end();
  }

  async #sendToken(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { auth } = this.#behaviour;
    const query = request.method === 'POST' ? await text(request) : (request.url ?? '').split('?')[1];
    const token = auth && this.#access.token(auth, request, new URLSearchParams(query));
    if (token === undefined) return fail(response, 401, 'UNAUTHORIZED');
    response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ token, access_token: token, expires_in: 300 }));
  }

  #sendManifest(response: ServerResponse, method: string, name: string): void {
    const manifest = this.#manifests.get(name);
    if (manifest === undefined) {
      fail(response, 404, 'MANIFEST_UNKNOWN');
      return;
    }
    const { bytes, mediaType } = manifest;
    response.writeHead(200, {
      ...{ 'content-type': mediaType, 'content-length': bytes.length, 'docker-content-digest': digestOf(bytes) },
    });
    response.end(method === 'HEAD' ? undefined : bytes);
  }

  async #sendBlob(response: ServerResponse, method: string, digest: string): Promise<void> {
    const blob = this.#blobs.get(digest);
    if (blob === undefined) return fail(response, 404, 'BLOB_UNKNOWN');
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': blob.bytes.length });
    if (method === 'HEAD') {
      response.end();
      return;
    }
    this.bodies.open += 1;
    this.bodies.most = Math.max(this.bodies.most, this.bodies.open);
    try {
      await writeBody(
        response,
        blob.bytes,
        () => this.#behaviour,
        () => once(this.#signals, 'changed'),
      );
    } finally {
      this.bodies.open -= 1;
    }
  }
}

function fail(response: ServerResponse, status: number, code = 'UNKNOWN'): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ errors: [{ code, message: code.toLowerCase().replaceAll('_', ' ') }] }));
}
