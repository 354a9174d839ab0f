import { PatchError } from './patch-budget.ts';

const indexPattern = /^[+-]?[0-9]{1,15}$/;

/**
 * Splits a JSON pointer (RFC 6901) into its unescaped tokens; '' is the whole document. As in Kubernetes, what stands
 * before the first slash is ignored, and a tilde without 0 or 1 behind it stands for itself.
 */
export function parsePointer(pointer: string): readonly string[] {
  if (pointer === '') return [];
  const tokens = pointer.split('/').slice(1);
  if (tokens.length === 0) throw new PatchError('unprocessable', 'a JSON pointer must be empty or contain a slash');
  return pointer.includes('~') ? tokens.map(unescapeToken) : tokens;
}

function unescapeToken(token: string): string {
  return token.replaceAll('~1', '/').replaceAll('~0', '~');
}

/**
 * The array index a token stands for; `length` is allowed only where something is inserted. Negative indices count from
 * the end, so that -1 is the last element or, where something is inserted, the position behind it.
 */
export function arrayIndex(token: string, length: number, inserting: boolean): number {
  if (inserting && token === '-') return length;
  const positions = inserting ? length + 1 : length;
  const given = indexPattern.test(token) ? Number(token) : Number.NaN;
  const index = given < 0 ? given + positions : given;
  if (!(index >= 0 && index < positions)) {
    throw new PatchError(
      'unprocessable',
      `no array index ${JSON.stringify(token.slice(0, 40))} in a list of ${length}`,
    );
  }
  return index;
}
