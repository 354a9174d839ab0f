import { setImmediate } from 'node:timers/promises';
import type { RequestContext } from '../meta/request-context.ts';

/** Bodies and objects above this size are processed in several turns of the event loop. */
const largeBytes = 64 * 1024;

/**
 * Lets other requests run between two steps of a request whose body or object has this many bytes. Each step of the
 * largest permitted one takes less than 100 ms; docs/adr/0030 has the measurements. Undefined for small ones.
 */
export function nextTurn(bytes: number): Promise<void> | undefined {
  return bytes > largeBytes ? setImmediate() : undefined;
}

/** The options of a storage call: the signal of the request, if it has one. */
export function signalOption({ signal }: RequestContext): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

/** A context that passes each distinct warning to `context` once, however many attempts an operation takes. */
export function warningOnce(context: RequestContext): RequestContext {
  return new DistinctWarnings(context);
}

/** Reads every property from the original context on demand, because some of them, such as the signal, are lazy. */
class DistinctWarnings implements RequestContext {
  readonly #context: RequestContext;
  #warn: ((text: string) => void) | undefined;

  constructor(context: RequestContext) {
    this.#context = context;
  }

  get user() {
    return this.#context.user;
  }

  get requestId() {
    return this.#context.requestId;
  }

  get userAgent() {
    return this.#context.userAgent;
  }

  get signal() {
    return this.#context.signal;
  }

  get authorize() {
    return this.#context.authorize;
  }

  get warn() {
    this.#warn ??= distinct(this.#context.warn);
    return this.#warn;
  }
}

function distinct(warn: (text: string) => void): (text: string) => void {
  const sent = new Set<string>();
  return (text) => {
    if (sent.has(text)) return;
    sent.add(text);
    warn(text);
  };
}
