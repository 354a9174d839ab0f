import { RuntimeError } from '@keelson/container-runtime';

interface Listed {
  readonly id: string;
}

/**
 * The id that a caller means. Tools show the beginnings of ids and let people type them, as daemons do. What names
 * nothing stays as it is: the engine says what is to be said of it.
 *
 * @throws `InvalidArgument` when several begin so
 */
export async function findId(word: string, list: (id?: string) => Promise<readonly Listed[]>): Promise<string> {
  if (word === '') throw new RuntimeError('InvalidArgument', 'an id is needed');
  const [exact] = await list(word);
  if (exact !== undefined) return exact.id;
  const [first, second] = startingWith(word, await list());
  if (second !== undefined) throw new RuntimeError('InvalidArgument', `several ids begin with "${word}"`);
  return first?.id ?? word;
}

/** Those whose id is this, or begins so; all of them for no word. */
export function startingWith<T extends Listed>(word: string | undefined, items: readonly T[]): readonly T[] {
  return word ? items.filter(({ id }) => id.startsWith(word)) : items;
}
