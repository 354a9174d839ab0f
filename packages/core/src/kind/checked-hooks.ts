import type { Strategy } from './strategy.ts';

type Hook = (...args: unknown[]) => unknown;

/** Hooks that change the object which they are given. */
const changing = [
  'default',
  'prepareForCreate',
  'prepareForUpdate',
  'prepareForStatusUpdate',
  'beginDeletion',
] as const;
/** Hooks that return all errors of an object. */
const validating = ['validate', 'validateCreate', 'validateUpdate', 'validateStatusUpdate'] as const;

/** What a hook has returned, for messages. */
export function shownResult(result: unknown): string {
  if (result === null || result === undefined) return String(result);
  if (typeof result !== 'object') return `a ${typeof result}`;
  if (typeof (result as { readonly then?: unknown }).then === 'function') return 'a promise';
  return Array.isArray(result) ? 'a list' : 'an object';
}

/**
 * The strategy with hooks whose results are checked: types do not protect programs in JavaScript, and an asynchronous
 * hook would change or reject an object after it was stored. The error becomes a 500 that names the hook and the kind.
 */
export function checkedHooks(strategy: Strategy, kind: string): Strategy {
  const checked: Record<string, Hook> = {};
  const check = (name: keyof Strategy, isWrong: (result: unknown) => boolean, wanted: string) => {
    const hook = strategy[name] as Hook | undefined;
    if (hook === undefined) return;
    checked[name] = (...args) => {
      const result = hook.apply(strategy, args);
      if (isWrong(result))
        throw new TypeError(`the hook ${name} of ${kind} returned ${shownResult(result)}; it must ${wanted}`);
      return result;
    };
  };
  for (const name of changing)
    check(name, (result) => result instanceof Promise, 'change the object and return nothing, without waiting');
  for (const name of validating)
    check(
      name,
      (result) => result !== undefined && !Array.isArray(result),
      'return the list of all errors, empty for none, without waiting',
    );
  return { ...strategy, ...checked };
}
