import { ContainerModule, type ContainerModuleLoadOptions } from 'inversify';
import type { Store } from '../storage/store.ts';
import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';
import type { Metrics } from './metrics.ts';

/** A name in the container that remembers the type bound to it. */
export interface Token<T> {
  readonly id: symbol;
  /** Phantom: carries `T`, never set. */
  readonly '~type'?: T;
}

export function token<T>(name: string): Token<T> {
  return { id: Symbol.for(name) };
}

type TokensOf<A extends readonly unknown[]> = { readonly [K in keyof A]: Token<A[K]> };

/**
 * Binds `target` to a factory over other tokens, as a singleton. Swapped or wrong dependencies do not compile. Factories are
 * synchronous and do no I/O; what must be started is a `Service`.
 */
export function provide<T, A extends readonly unknown[]>(
  options: ContainerModuleLoadOptions,
  target: Token<T>,
  dependencies: TokensOf<A>,
  factory: (...args: A) => T,
): void {
  const bindings = dependencies as readonly Token<unknown>[];
  options
    .bind<T>(target.id)
    .toResolvedValue((...args: unknown[]) => factory(...(args as unknown as A)), bindings.map((d) => d.id) as never)
    .inSingletonScope();
}

/** A module whose bindings are made by `load`. */
export function moduleOf(load: (options: ContainerModuleLoadOptions) => void): ContainerModule {
  return new ContainerModule(load);
}

export const StoreToken = token<Store>('keelson.Store');
export const ClockToken = token<Clock>('keelson.Clock');
export const LoggerToken = token<Logger>('keelson.Logger');
export const MetricsToken = token<Metrics>('keelson.Metrics');
