import type { RequestContext } from '../meta/request-context.ts';

/** The same caller, who hears every remark once, however many attempts an operation takes. */
export function warningOnce(context: RequestContext): RequestContext {
  return new WarnedOnce(context);
}

/**
 * Asks the caller's own context for the rest: what it makes on demand, such as a signal, is made only if somebody asks.
 */
class WarnedOnce implements RequestContext {
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
    this.#warn ??= onceEach(this.#context.warn);
    return this.#warn;
  }
}

function onceEach(warn: (text: string) => void): (text: string) => void {
  const heard = new Set<string>();
  return (text) => {
    if (heard.has(text)) return;
    heard.add(text);
    warn(text);
  };
}
