import { readFile } from 'node:fs/promises';
import { type Clock, systemClock } from '@keelson/core';

const freshMs = 60_000;

/**
 * A token provider that reads a file again when what it read is a minute old: tokens of service accounts are replaced
 * while they run.
 */
export function tokenFromFile(path: string, clock: Clock = systemClock): () => Promise<string> {
  let known: { readonly token: string; readonly at: number } | undefined;
  return async () => {
    const now = clock.monotonic();
    if (known !== undefined && now - known.at < freshMs) return known.token;
    try {
      const token = (await readFile(path, 'utf8')).trim();
      if (token === '') throw new Error(`the token file is empty: ${path}`);
      known = { token, at: now };
      return token;
    } catch (error) {
      // A file may be missing for a moment while it is replaced. The last token is valid for longer.
      if (known === undefined) throw error;
      return known.token;
    }
  };
}
