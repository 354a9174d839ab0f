import { isRuntimeError, RuntimeError } from '@keelson/container-runtime';
import type { EngineInfo } from './documents.ts';
import type { EngineHttp } from './engine-http.ts';
import { type Negotiated, negotiate } from './negotiate.ts';

export interface KnownEngine extends Negotiated {
  readonly info: EngineInfo;
}

/** Who is at the other end, as far as it has answered yet. */
export class EngineLink {
  readonly #http: EngineHttp;
  #known: KnownEngine | undefined;

  constructor(http: EngineHttp) {
    this.#http = http;
  }

  /** Asks anew: after an interruption it may be another version. @throws `Unavailable`, `Unsupported` */
  async ask(): Promise<KnownEngine> {
    const negotiated = await negotiate(this.#http);
    const { flavour, version, info } = this.#known ?? {};
    const same = info !== undefined && flavour === negotiated.flavour && version === negotiated.version;
    // Podman runs half a dozen programs to answer this one.
    this.#known = { ...negotiated, info: same ? info : (await this.#http.json<EngineInfo>('GET', '/info')).body };
    return this.#known;
  }

  /** The same, and undefined when nobody is there. */
  async askIfThere(): Promise<KnownEngine | undefined> {
    return this.ask().catch((error: unknown) => {
      if (isRuntimeError(error, 'Unavailable')) return undefined;
      throw error;
    });
  }

  /** @throws `Unavailable` until it has answered once */
  get known(): KnownEngine {
    if (this.#known === undefined) throw new RuntimeError('Unavailable', 'the container engine has not answered yet');
    return this.#known;
  }
}
