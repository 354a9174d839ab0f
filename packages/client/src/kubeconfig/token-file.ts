import { readFile } from 'node:fs/promises';
import { type Clock, systemClock } from '@keelson/core/runtime';

const cacheMs = 60_000;

/**
 * A token provider that reads a file and caches the token for one minute, because the tokens of service accounts are
 * rotated.
 */
export function tokenFromFile(path: string, clock: Clock = systemClock): () => Promise<string> {
  let cached: { readonly token: string; readonly at: number } | undefined;
  return async () => {
    const now = clock.monotonic();
    if (cached !== undefined && now - cached.at < cacheMs) return cached.token;
    try {
      const token = (await readFile(path, 'utf8')).trim();
      if (token === '') throw new Error(`the token file is empty: ${path}`);
      cached = { token, at: now };
      return token;
    } catch (error) {
      // The file may be missing for a short time while it is replaced. The previous token is still valid then.
      if (cached === undefined) throw error;
      return cached.token;
    }
  };
}
