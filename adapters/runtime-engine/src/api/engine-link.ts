import { isRuntimeError, RuntimeError } from '@keelson/container-runtime';
import type { EngineInfo } from './documents.ts';
import type { EngineHttp } from './engine-http.ts';
import { type Negotiated, negotiate } from './negotiate.ts';

export interface ConnectedEngine extends Negotiated {
  readonly info: EngineInfo;
}

/** The identity of the engine at the endpoint, once it has responded. */
export class EngineLink {
  readonly #http: EngineHttp;
  #engine: ConnectedEngine | undefined;

  constructor(http: EngineHttp) {
    this.#http = http;
  }

  /** Queries the engine again: after an interruption its version may differ. @throws `Unavailable`, `Unsupported` */
  async refresh(): Promise<ConnectedEngine> {
    const negotiated = await negotiate(this.#http);
    const { flavour, version, info } = this.#engine ?? {};
    const same = info !== undefined && flavour === negotiated.flavour && version === negotiated.version;
    // GET /info is expensive with Podman, which starts several programs to respond.
    this.#engine = { ...negotiated, info: same ? info : (await this.#http.json<EngineInfo>('GET', '/info')).body };
    return this.#engine;
  }

  /** Queries the engine again; undefined when no engine responds. @throws `Unsupported` */
  async refreshIfReachable(): Promise<ConnectedEngine | undefined> {
    return this.refresh().catch((error: unknown) => {
      if (isRuntimeError(error, 'Unavailable')) return undefined;
      throw error;
    });
  }

  /** @throws `Unavailable` until the engine has responded once */
  get engine(): ConnectedEngine {
    if (this.#engine === undefined) throw new RuntimeError('Unavailable', 'the container engine has not answered yet');
    return this.#engine;
  }
}
