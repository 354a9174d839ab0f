import { stripVTControlCharacters } from 'node:util';

/**
 * Control characters other than tab and newline, further line separators, and characters that change the direction of
 * text.
 */
const unprintable = /[^\P{Cc}\t\n]|[\u2028\u2029]|\p{Bidi_Control}/gu;

/**
 * Text of an untrusted source, safe to print on a terminal: without escape sequences, control characters (tab and
 * newline stay) and characters that reorder text. Clients print messages of a Status as they are.
 */
export function printableText(text: string): string {
  return stripVTControlCharacters(text).replace(unprintable, '');
}
