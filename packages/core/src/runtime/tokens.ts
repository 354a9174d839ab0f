import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';
import type { Metrics } from './metrics.ts';

/** A name in the container that remembers the type bound to it. */
export interface Token<T> {
  readonly id: symbol;
  /** Phantom: carries `T`, never set. */
  readonly '~type'?: T;
}

/** A token with this name; equal names give equal tokens. */
export function token<T>(name: string): Token<T> {
  return { id: Symbol.for(name) };
}

type TokensOf<A extends readonly unknown[]> = { readonly [K in keyof A]: Token<A[K]> };

/**
 * Binds `target` to a factory over other tokens, called once, at the first request. Swapped or wrong dependencies
 * do not compile. Factories are synchronous and do no I/O; what must be started is a `Service`.
 */
export type Bind = <T, A extends readonly unknown[]>(
  target: Token<T>,
  dependencies: TokensOf<A>,
  factory: (...args: A) => T,
) => void;

/**
 * A group of bindings, which are made when the composition root calls it with `bind`. It does not depend on the
 * container.
 */
export type BindingModule = (bind: Bind) => void;

/** The clock of the process, for adapters. */
export const ClockToken = token<Clock>('keelson.Clock');
/** The logger of the process, for adapters. */
export const LoggerToken = token<Logger>('keelson.Logger');
/** The metrics of the process, for adapters. */
export const MetricsToken = token<Metrics>('keelson.Metrics');
