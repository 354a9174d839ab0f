import { PatchError } from './patch-budget.ts';

const indexPattern = /^(?:0|[1-9][0-9]{0,15})$/;

/** Splits a JSON pointer (RFC 6901) into its unescaped tokens; '' is the whole document. */
export function parsePointer(pointer: string): readonly string[] {
  if (pointer === '') return [];
  if (pointer[0] !== '/') throw new PatchError('unprocessable', 'a JSON pointer must be empty or begin with a slash');
  const tokens = pointer.slice(1).split('/');
  return pointer.includes('~') ? tokens.map(unescapeToken) : tokens;
}

function unescapeToken(token: string): string {
  if (/~(?![01])/.test(token))
    throw new PatchError('unprocessable', 'a JSON pointer has a tilde without 0 or 1 behind it');
  return token.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** The array index a token stands for; `length` is allowed only where something is inserted. */
export function arrayIndex(token: string, length: number, inserting: boolean): number {
  if (inserting && token === '-') return length;
  const index = indexPattern.test(token) ? Number(token) : -1;
  if (index < 0 || index > length || (index === length && !inserting)) {
    throw new PatchError(
      'unprocessable',
      `no array index ${JSON.stringify(token.slice(0, 40))} in a list of ${length}`,
    );
  }
  return index;
}
