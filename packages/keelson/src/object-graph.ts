import type { BindingModule, Token } from '@keelson/core';
import { Container } from 'inversify';

/**
 * The only place that knows the container: answers what the modules bind, each thing made once and not before it is
 * asked for.
 */
export function objectGraph(...modules: readonly BindingModule[]): <T>(wanted: Token<T>) => T {
  const container = new Container();
  for (const module of modules) {
    module((target, dependencies, factory) => {
      const bindings = dependencies as readonly Token<unknown>[];
      container
        .bind(target.id)
        .toResolvedValue(factory as never, bindings.map((token) => token.id) as never)
        .inSingletonScope();
    });
  }
  return <T>(wanted: Token<T>) => container.get<T>(wanted.id);
}
