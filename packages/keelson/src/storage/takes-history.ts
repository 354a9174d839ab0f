import type { Schema } from '@keelson/core';

/** True when an adapter's options have `history: { minChanges, minAgeMs }`, the form of the common key. */
export function takesHistory(options: Schema<unknown>): boolean {
  const { node } = options;
  const history = node.type === 'message' ? node.fields['history']?.schema.node : undefined;
  if (history?.type !== 'message') return false;
  return history.fields['minChanges'] !== undefined && history.fields['minAgeMs'] !== undefined;
}
