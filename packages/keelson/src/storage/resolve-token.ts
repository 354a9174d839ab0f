import type { BindingModule, Token } from '@keelson/core/runtime';

interface Binding {
  readonly dependencies: readonly Token<unknown>[];
  readonly create: (...values: never[]) => unknown;
}

/**
 * Creates the value of a token from the bindings of modules. A factory runs once, and only when its token is required.
 *
 * @throws Error when a required token is not bound, when two modules bind the same token, and when a token depends on
 *   itself
 */
export function resolveToken<T>(token: Token<T>, ...modules: readonly BindingModule[]): T {
  const bindings = new Map<symbol, Binding>();
  for (const module of modules) {
    module((target, dependencies, create) => {
      if (bindings.has(target.id)) throw new Error(`two modules bind ${nameOf(target.id)}`);
      bindings.set(target.id, { dependencies: dependencies as readonly Token<unknown>[], create });
    });
  }
  const values = new Map<symbol, unknown>();
  const resolve = (id: symbol, dependents: readonly symbol[]): unknown => {
    if (values.has(id)) return values.get(id);
    const binding = bindings.get(id);
    if (binding === undefined) throw new Error(`no module binds ${nameOf(id)}`);
    const path = [...dependents, id];
    if (dependents.includes(id)) throw new Error(`a token depends on itself: ${path.map(nameOf).join(' -> ')}`);
    const value = binding.create(
      ...(binding.dependencies.map((dependency) => resolve(dependency.id, path)) as never[]),
    );
    values.set(id, value);
    return value;
  };
  return resolve(token.id, []) as T;
}

function nameOf(id: symbol): string {
  return id.description ?? String(id);
}
