/** A selector that is not valid; the client receives `message` with the 400. */
export class SelectorError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SelectorError';
  }
}

/** Longest text of a selector, in characters. */
export const maxSelectorLength = 8192;
/** Most requirements in one selector. */
export const maxRequirements = 100;
