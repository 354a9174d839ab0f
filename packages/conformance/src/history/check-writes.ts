import { sameFields, stateAfter } from './expected-state.ts';
import type { CallOf, IndexedHistory } from './indexed-history.ts';
import { kindOfKey, type SeenObject, type WriteOperation } from './records.ts';
import { isWholeKind } from './selection.ts';
import type { TimeBounds } from './time-bounds.ts';
import type { Version, Versions } from './versions.ts';
import type { Findings } from './violation.ts';

/**
 * Replays every key: each write must have met the state that its revision implies, and produced the requested state.
 */
export function checkWrites(versions: Versions, bounds: TimeBounds, findings: Findings): void {
  for (const kind of versions.kinds) {
    for (const key of versions.keys(kind)) {
      let before: Version | undefined;
      for (const version of versions.chain(key)) {
        if (version.write !== undefined) {
          checkOrder(version, version.write, bounds, findings);
          checkEffect(version, before, version.write, findings);
        }
        before = version;
      }
    }
  }
}

function checkOrder(
  { revision, seenAt, source }: Version,
  write: CallOf<WriteOperation>,
  bounds: TimeBounds,
  findings: Findings,
) {
  if (seenAt < write.start) {
    findings.add('I3', `revision ${revision} was seen before the write that made it began`, write, source);
    return;
  }
  const floor = bounds.floor(write.start);
  if (revision <= floor) {
    findings.add('I3', `a write got revision ${revision}, although ${floor} had been seen before it began`, write);
  }
}

function checkEffect(
  version: Version,
  before: Version | undefined,
  write: CallOf<WriteOperation>,
  findings: Findings,
): void {
  const { op } = write;
  const { key, revision, deleted, object } = version;
  const existing = before === undefined || before.deleted ? undefined : before.object;
  if (op.do === 'create') {
    if (existing !== undefined) {
      findings.add('I4', `${key} was created at ${revision} although it existed`, write, existing, before?.write);
    }
  } else if (existing === undefined) {
    findings.add('I4', `${op.do} of ${key} took effect at ${revision} although it did not exist`, write, before?.write);
    return;
  } else if (op.expect !== undefined && op.expect !== existing.revision) {
    const text = `${op.do} of ${key} at ${revision} was on the condition of revision ${op.expect}, but ${existing.revision} was current`;
    findings.add('I4', text, write, existing, before?.write);
  }
  if ((op.do === 'delete') !== deleted) {
    findings.add(
      'I1',
      `${op.do} of ${key} became ${deleted ? 'a deletion' : 'a state'} at ${revision}`,
      write,
      version.source,
    );
  } else if (op.do === 'delete') {
    checkDeletion(version, existing, write, findings);
  } else {
    const wanted = stateAfter(op, op.do === 'create' ? undefined : existing);
    for (const part of ['labels', 'values', 'status'] as const) {
      if (sameFields(wanted[part], object[part])) continue;
      const text = `${op.do} at ${revision} left other ${part} than it must: ${JSON.stringify(wanted[part])} was due`;
      findings.add('I1', text, write, object, existing);
    }
  }
}

function checkDeletion(
  { key, revision, object, source }: Version,
  existing: SeenObject | undefined,
  write: CallOf<WriteOperation>,
  findings: Findings,
) {
  if (existing === undefined) return;
  if (existing.uid !== object.uid)
    findings.add('I10', `the deletion of ${key} at ${revision} names another uid`, source, existing, object);
  else if (existing.digest !== object.digest) {
    findings.add(
      'I6',
      `the deletion of ${key} at ${revision} does not show its last state`,
      source,
      existing,
      object,
      write,
    );
  }
}

/**
 * Checks acknowledged deletes that no watch shows. They are violations when the object continued to exist, or when a
 * watch of the whole kind was complete. Returns the number of deletes that cannot be decided.
 */
export function checkUnseenDeletes(
  history: IndexedHistory,
  unseen: readonly CallOf<WriteOperation>[],
  versions: Versions,
  findings: Findings,
): number {
  const followed = new Set(
    history.sessions
      .filter(
        ({ opened }) => isWholeKind(opened.selection) && history.finished.some(({ watch }) => watch === opened.watch),
      )
      .map(({ opened }) => opened.selection.kind),
  );
  let open = 0;
  for (const write of unseen) {
    const { key } = write.op;
    const uid = write.reply.is === 'ok' ? write.reply.uid : undefined;
    const later = versions
      .chain(key)
      .find(({ object, write: by }) => object.uid === uid && (by?.start ?? 0) > write.end);
    if (later !== undefined) {
      findings.add(
        'I1',
        `an acknowledged delete of ${key} was lost: the object changed afterwards`,
        write,
        later.source,
      );
    } else if (followed.has(kindOfKey(key))) {
      findings.add('I1', `an acknowledged delete of ${key} is in no watch`, write);
    } else {
      open += 1;
    }
  }
  return open;
}
