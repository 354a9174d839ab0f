import type { KindDefinition } from '../kind/kind-definition.ts';
import { type AnyObject, equalJson } from './json-values.ts';

const notIntent: ReadonlySet<string> = new Set(['kind', 'apiVersion', 'metadata', 'status']);

function sameIntent(a: AnyObject, b: AnyObject): boolean {
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    if (!notIntent.has(key) && !equalJson(a[key], b[key])) return false;
  }
  return true;
}

/** Raises metadata.generation when the intent of the object has changed: see docs/reference/api-rules.md#generation. */
export function raiseGeneration(kind: KindDefinition, object: AnyObject, old: AnyObject): void {
  const rule = kind.strategy.generation ?? 'none';
  if (rule === 'none' || !object.metadata) return;
  const annotationsCount = rule === 'spec-and-annotations';
  if (
    !sameIntent(object, old) ||
    (annotationsCount && !equalJson(object.metadata.annotations ?? {}, old.metadata?.annotations ?? {}))
  ) {
    object.metadata.generation = (old.metadata?.generation ?? 0) + 1;
  }
}
