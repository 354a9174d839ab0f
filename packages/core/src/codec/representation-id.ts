let last = 0;

/** An id for a representation that no other has in this process; `what` is for people. */
export function representationId(what: string): string {
  last += 1;
  return `${what}#${last}`;
}
