/** Newest first; of those made in the same millisecond, the later one comes first. */
export function newestFirst<T extends { readonly createdAt: number }>(items: T[]): T[] {
  return items.reverse().sort((a, b) => b.createdAt - a.createdAt);
}
