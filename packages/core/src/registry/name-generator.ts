import { randomInt } from 'node:crypto';

/** Makes a name from the base that a client gave as generateName. */
export type NameGenerator = (base: string) => string;

/** No vowels, so that no words come out, and no characters that look alike. */
const alphabet = 'bcdfghjklmnpqrstvwxz2456789';
const suffixLength = 5;
const longestBase = 58;

/** How many generated names a create tries: see docs/reference/api-rules.md#generated-names. */
export const nameAttempts = 8;

/** The base, cut to 58 characters, and five random ones. */
export const randomName: NameGenerator = (base) => {
  let name = base.slice(0, longestBase);
  for (let i = 0; i < suffixLength; i++) name += alphabet[randomInt(alphabet.length)];
  return name;
};
