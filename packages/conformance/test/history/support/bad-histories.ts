import type { BadHistory } from './bad-history.ts';
import { badReads } from './bad-reads.ts';
import { badWatches } from './bad-watches.ts';
import { badWrites } from './bad-writes.ts';

/** Each breaks one invariant that the checker must name. */
export const badHistories: readonly BadHistory[] = [...badWrites, ...badReads, ...badWatches];
