import type { CallOf, IndexedHistory } from './indexed-history.ts';
import type { GetOperation, SeenObject, WriteOperation } from './records.ts';
import type { TimeBounds } from './time-bounds.ts';
import type { Versions } from './versions.ts';
import type { Findings } from './violation.ts';

/**
 * Checks gets, and writes that were refused because of the present state: each must match the object at a revision that
 * was current during the call, or that the call allowed.
 */
export function checkReads(history: IndexedHistory, versions: Versions, bounds: TimeBounds, findings: Findings): void {
  for (const get of history.gets) checkGet(get, history.objects, versions, bounds, findings);
  for (const write of history.writes) {
    if (write.reply.is === 'refused') checkRefusal(write, versions, bounds, findings);
  }
}

function checkGet(
  get: CallOf<GetOperation>,
  objects: ReadonlyMap<number, SeenObject>,
  versions: Versions,
  bounds: TimeBounds,
  findings: Findings,
): void {
  const { op, reply } = get;
  const missing = reply.is === 'refused' && reply.code === 404;
  if (reply.is !== 'ok' && !missing) return;
  const seen = reply.is === 'ok' ? objects.get(reply.object ?? -1) : undefined;
  const from = op.at.at === 'latest' ? bounds.floor(get.start) : op.at.at === 'any' ? 0 : op.at.revision;
  const to = bounds.ceiling(get.end);
  if (seen !== undefined && seen.key !== op.key) {
    findings.add('I5', `a get of ${op.key} brought ${seen.key}`, get, seen);
    return;
  }
  if (versions.some(op.key, from, to, (object) => object?.revision === seen?.revision)) return;
  const what = seen === undefined ? `${op.key} as missing` : `${op.key} at revision ${seen.revision}`;
  const current = versions.at(op.key, from);
  const text = `a get (${op.at.at}) showed ${what}, which was not its state at any revision from ${from} to ${to}`;
  findings.add('I5', text, get, seen, current);
}

function checkRefusal(write: CallOf<WriteOperation>, versions: Versions, bounds: TimeBounds, findings: Findings): void {
  const { op, reply } = write;
  if (reply.is !== 'refused') return;
  const fits = reasonable(op, reply.code);
  if (fits === undefined) return;
  const from = bounds.floor(write.start);
  const to = bounds.ceiling(write.end);
  if (versions.some(op.key, from, to, fits)) return;
  const text = `${op.do} of ${op.key} was refused with ${reply.code}, but there was no reason at any revision from ${from} to ${to}`;
  findings.add('I4', text, write, versions.at(op.key, from));
}

/** Returns the states in which a refusal is correct; undefined when it does not depend on the state. */
function reasonable(op: WriteOperation, code: number): ((object: SeenObject | undefined) => boolean) | undefined {
  if (op.do === 'create') return code === 409 ? (object) => object !== undefined : undefined;
  if (code === 404) return (object) => object === undefined;
  const { expect } = op;
  if (code === 409 && expect !== undefined) return (object) => object?.revision !== expect;
  return undefined;
}
