/** The number of indexes in a list such as `1,3-5,7`, or the reason why the list is invalid. */
export type IndexCount = { readonly count: number } | { readonly problem: string };

interface Interval {
  readonly first: number;
  readonly last: number;
}

/** Counts the indexes of a list, which must ascend and be below `completions`. */
export function countIndexes(text: string, completions: number): IndexCount {
  if (text === '') return { count: 0 };
  let count = 0;
  let previous: number | undefined;
  for (const part of text.split(',')) {
    const interval = parseInterval(part, completions);
    if (typeof interval === 'string') return { problem: interval };
    const { first, last } = interval;
    if (previous !== undefined && previous >= first) {
      return { problem: `non-increasing order, previous: ${previous}, current: ${first}` };
    }
    count += last - first + 1;
    previous = last;
  }
  return { count };
}

/** The first index that is in both lists. Parts that are invalid are left out. */
export function commonIndex(a: string, b: string, completions: number): number | undefined {
  const [left, right] = [intervalsOf(a, completions), intervalsOf(b, completions)];
  let [i, j] = [0, 0];
  for (;;) {
    const [x, y] = [left[i], right[j]];
    if (!x || !y) return undefined;
    if (x.first <= y.last && y.first <= x.last) return Math.max(x.first, y.first);
    if (x.first <= y.first) i += 1;
    else j += 1;
  }
}

function intervalsOf(text: string, completions: number): Interval[] {
  if (text === '') return [];
  return text.split(',').flatMap((part) => {
    const interval = parseInterval(part, completions);
    return typeof interval === 'string' ? [] : [interval];
  });
}

const shown = (text: string): string => JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}...` : text);

function parseInterval(text: string, completions: number): Interval | string {
  const limits = text.split('-', 3);
  if (limits.length > 2) {
    return `the fragment ${shown(text)} violates the requirement that an index interval can have at most two parts separated by '-'`;
  }
  const numbers: number[] = [];
  for (const limit of limits) {
    if (!/^\+?\d+$/.test(limit)) return `cannot convert string to integer for index: ${shown(limit)}`;
    if (Number(limit) >= completions) return `too large index: ${shown(limit)}`;
    numbers.push(Number(limit));
  }
  const [first = 0, last = first] = numbers;
  if (numbers.length > 1 && first >= last) {
    return `non-increasing order, previous: ${first}, current: ${last}`;
  }
  return { first, last };
}
